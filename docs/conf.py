"""The site: Sphinx over the Markdown pages of this folder, made by ``make docs`` with warnings as errors."""

from spmdlint import __version__

project = "spmdlint"
author = project_copyright = "The spmdlint developers"
release = version = __version__

extensions = ["myst_parser", "sphinxcontrib.mermaid"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["field/*"]
root_doc = "index"

myst_heading_anchors = 3
myst_fence_as_directive = ["mermaid"]
nitpicky = True

html_theme = "furo"
html_title = f"spmdlint {release}"
html_copy_source = False
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_use_index = False  # there is nothing in it

mermaid_height = "auto"
mermaid_fullscreen = False  # its button is a character that few fonts have

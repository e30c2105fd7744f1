"""The page as one file: markup, style, script and data, and a policy under which the browser loads nothing else."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from importlib.resources import files
from string import Template

from spmdlint.runtime_checks.page.data import Document
from spmdlint.runtime_checks.page.document import Job, document
from spmdlint.runtime_checks.reporting.report import as_text


def page(job: Job) -> str:
    """The page on a job."""
    folder = files(__package__ or "")
    style, script, markup = (folder.joinpath(f"page.{kind}").read_text("utf-8") for kind in ("css", "js", "html"))
    kind = f" ({job.report.kind})" if job.report.kind else ""
    return Template(markup).substitute(
        title=html.escape(f"spmdlint: {job.report.verdict}{kind}"),
        policy=f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none'; "
        "form-action 'none'",
        style=style,
        script=script,
        data=_embedded(document(job)),
        text=html.escape(as_text(job.report)),
    )


def _hash(text: str) -> str:
    """The name of an inline style or script in a policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _embedded(data: Document) -> str:
    """JSON that may stand in a script element: nothing in it ends the element or begins another."""
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")

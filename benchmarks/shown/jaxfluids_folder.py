"""JAX-Fluids: ``OutputWriter.get_folder_name`` waits for all processes only where the folder is not there yet.

Process 1 comes three seconds later than process 0, which makes the folder.
"""

from __future__ import annotations

import time
from types import SimpleNamespace

from loading import SCRATCH, importable, start

importable("src")

from jaxfluids.io_utils.output_writer import OutputWriter  # noqa: E402 - from the checkout

process = start()
writer = SimpleNamespace(
    case_name="sod",
    save_path=str(SCRATCH / "results"),
    process_id=process,
    is_multihost=True,
    is_parallel_filesystem=True,
    is_write_turbulence_statistics=False,
    is_xdmf=False,
    case_setup_dict={},
    numerical_setup_dict={},
    hdf5_writer=SimpleNamespace(set_save_path_domain=lambda path: None),
)
writer.get_folder_name = lambda: OutputWriter.get_folder_name(writer)
writer.create_folder = lambda: OutputWriter.create_folder(writer)
time.sleep(3 * process)
print(process, "writes to", OutputWriter.configure_output_writer(writer)[0], flush=True)

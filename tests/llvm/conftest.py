# SPDX-License-Identifier: Apache-2.0
"""Lets these tests import the helpers of tests/, tests/compile and tests/golden."""

import fcntl
import importlib.util
import sys
from pathlib import Path

import pytest

_TESTS = Path(__file__).resolve().parents[1]
for _folder in (_TESTS, _TESTS / "compile", _TESTS / "golden"):
    if str(_folder) not in sys.path:
        sys.path.insert(0, str(_folder))

collect_ignore = []
if importlib.util.find_spec("llvmlite") is None:
    # test_llvmlite_absent.py is what has to hold then.
    sys.stderr.write("tests/llvm: llvmlite is not installed: only test_llvmlite_absent.py runs\n")
    collect_ignore += ["test_backends_agree.py", "test_lifecycle_backends.py", "test_metadata_objects.py"]
    collect_ignore += ["test_ir_errors.py"]


@pytest.fixture(scope="session")
def apps(tmp_path_factory, request):
    """The application of each back end: made once, whichever worker of pytest-xdist comes first."""
    from backends_support import BACK_ENDS, applications

    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if hasattr(request.config, "workerinput") else base) / "backends"
    shared.mkdir(exist_ok=True)
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "done").exists():
            applications(shared)
            (shared / "done").touch()
    return {metadata: shared / metadata for metadata in BACK_ENDS}

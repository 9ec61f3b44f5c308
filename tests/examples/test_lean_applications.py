# SPDX-License-Identifier: Apache-2.0
"""Generated applications have few files, only the used parts of the runtime, and no empty files."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from in_process import succeed
from opwest.zephyr.runtime import files_of
from requirements_support import need

ROOT = Path(__file__).resolve().parents[2]
STUBS = ROOT / "tests" / "compile" / "zephyr_stubs"
MAX_FILES = {"digits": 75, "minimal": 45, "two_npus": 105}
FEATURES = {
    "minimal": {"core", "sources"},
    "digits": {"core", "vectors"},
    "two_npus": {"core", "devices", "drivers", "npu_emul", "sources", "syscalls"},
}
# They include Zephyr's headers, and are compiled by the tests that build images.
ZEPHYR_ONLY = re.compile(r"_zephyr\.c$|_syscalls\.c$|shell\.c$|_smp\.c$|_native\.c$")


def source_of(name, folder):
    """Write the files that an example's manifest names; return the manifest."""
    origin = ROOT / ("tests/golden" if name == "minimal" else "examples") / name
    shutil.copytree(origin, folder, ignore=shutil.ignore_patterns("__pycache__", "objects"))
    if name == "digits":
        command = [sys.executable, folder / "compile_operators.py"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / "manifest.yaml"


@pytest.fixture(scope="module", params=FEATURES)
def application(request, tmp_path_factory):
    need("gcc")
    work = tmp_path_factory.mktemp(request.param)
    succeed("generate", source_of(request.param, work / "source"), "-o", work / "app")
    return request.param, work / "app"


def files_in(app):
    return sorted(path.relative_to(app).as_posix() for path in app.rglob("*") if path.is_file())


def test_number_of_files_and_files_of_the_runtime(application):
    name, app = application
    assert len(files_in(app)) <= MAX_FILES[name], "\n".join(files_in(app))
    assert files_in(app / "modules" / "opwest") == files_of(FEATURES[name])


def test_no_file_is_empty(application):
    _, app = application
    for name in files_in(app):
        if name.endswith((".conf", ".overlay", "Kconfig", ".cmake")):
            lines = (app / name).read_text().splitlines()
            assert [line for line in lines if line.strip() and not line.lstrip().startswith("#")], name
    for path in app.glob("models/*/src/*_devices.*"):
        assert json.loads((app / ".opwest/lock.json").read_text())["record"]["models"][0]["devices"], path
    users = json.loads((app / ".opwest/lock.json").read_text())["user"]
    assert {"CMakeLists.txt", "prj.conf"} < {name for name, row in users.items() if len(row) == 2}
    assert len(users.get("src/held_out.h", [""])) == 1, "copies of the user's files have no base"


def test_copied_runtime_is_sufficient(application, tmp_path):
    """The files that do not need Zephyr compile with the headers in the application only."""
    _, app = application
    models = list((app / "models").iterdir())
    includes = [f"-I{folder / 'include'}" for folder in (app / "modules" / "opwest", *models)]
    sources = [path for path in (app / "modules" / "opwest").rglob("*.c") if not ZEPHYR_ONLY.search(path.name)]
    emitted = [path for folder in models for path in (folder / "src").glob("*.c")]
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", *includes]
    stubs = ["-D__ZEPHYR__=1", "-DCONFIG_BOARD_MPS2_AN385=1", f"-I{STUBS}"]
    assert len(sources) >= 3 and len(emitted) >= 2  # of each model the metadata and the run
    for index, source in enumerate([*sources, *emitted]):
        options = stubs if source in emitted else []
        command = ["gcc", *flags, *options, "-c", source, "-o", tmp_path / f"{index}.o"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the command line tests: the digits example, copied and compiled for this machine."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from requirements_support import absent, need

_TESTS = Path(__file__).resolve().parents[1]
for _folder in (_TESTS, *(_TESTS / name for name in ("compile", "golden", "unit/board", "unit/objects"))):
    if str(_folder) not in sys.path:
        sys.path.insert(0, str(_folder))

from doctor_machines import UNSET, FakeMachine, accepted  # noqa: E402
from examples.example_files import reference_of  # noqa: E402
from fake_west import FakeWest  # noqa: E402
from opwest.cli.main import main  # noqa: E402

DIGITS = _TESTS.parent / "examples" / "digits"


@pytest.fixture(scope="module", params=["c", pytest.param("llvm", marks=pytest.mark.slow)])
def metadata(request):
    """The back end: `make test` runs these tests with that of C."""
    if request.param == "llvm":
        need("llvmlite")
    return request.param


@pytest.fixture
def opwest(capsys):
    """Return a function that runs the command line in this process and returns exit code, stdout and stderr."""

    def run(*arguments):
        capsys.readouterr()
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as end:
            code = end.code
        shown = capsys.readouterr()
        return SimpleNamespace(code=code, out=shown.out, err=shown.err)

    return run


def _ending(opwest, code):
    def run(*arguments):
        done = opwest(*arguments)
        assert done.code == code, done.out + done.err
        return done

    return run


@pytest.fixture
def succeed(opwest):
    """Return a function that runs a command that must succeed."""
    return _ending(opwest, 0)


@pytest.fixture
def fail(opwest):
    """Return a function that runs a command that must report an error."""
    return _ending(opwest, 1)


@pytest.fixture
def fake_machine(tmp_path, monkeypatch):
    """A machine made of scripts, with everything but an SDK, in which all packages of opwest are installed."""
    made = FakeMachine(tmp_path / "machine")
    for name in UNSET:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(made.bin))
    monkeypatch.setenv("HOME", str(made.home))
    monkeypatch.chdir(made.home)
    monkeypatch.setattr("opwest.doctor.packages.installed", accepted)
    return made


@pytest.fixture
def lacks(opwest):
    """Return a function that returns what a feature lacks on the machine, or what several lack, by name."""

    def run(*names):
        done = opwest("doctor", *names, "--json")
        report = json.loads(done.out)
        assert report["ok"] == (done.code == 0), report
        features = report["result"]["features"]
        found = {one["name"]: [(lack["what"], lack["command"]) for lack in one["lacks"]] for one in features}
        return found[names[0]] if len(names) == 1 else found

    return run


@pytest.fixture
def plug():
    """Return a function that connects a fake board, which answers as the given object."""
    from fake_board import FakeBoard

    boards = []

    def make(answer):
        boards.append(FakeBoard(answer))
        return boards[-1]

    yield make
    for board in boards:
        board.close()


@pytest.fixture
def west(tmp_path, monkeypatch):
    """A workspace whose west only records its calls."""
    made = FakeWest(tmp_path / "workspace")
    monkeypatch.setenv("ZEPHYR_BASE", str(made.workspace.base))
    monkeypatch.setattr("opwest.runs.preflight.tool_lacks", lambda *_, **__: ([], {}))
    return made


@pytest.fixture(scope="session")
def digits(tmp_path_factory):
    """The example, copied, with its operators compiled for this machine."""
    need("cc")
    folder = tmp_path_factory.mktemp("digits") / "digits"
    shutil.copytree(DIGITS, folder, ignore=shutil.ignore_patterns("objects", "__pycache__"))
    command = [sys.executable, "compile_operators.py", "x86-64"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        absent(f"the operators do not compile here: {done.stderr.strip()[:200]}", "cc")
    return folder


@pytest.fixture(scope="session")
def reference():
    return reference_of("digits")


@pytest.fixture(scope="session")
def digits_app(digits, tmp_path_factory):
    """The generated application, read-only."""
    app = tmp_path_factory.mktemp("digits_app") / "app"
    assert main(["generate", str(digits / "manifest.yaml"), "-o", str(app)]) == 0
    return app


@pytest.fixture(scope="module")
def digits_of(digits, metadata, tmp_path_factory):
    """The generated application with each back end."""
    app = tmp_path_factory.mktemp(f"digits_{metadata}") / "app"
    assert main(["generate", str(digits / "manifest.yaml"), "-o", str(app), f"--metadata={metadata}"]) == 0
    return app

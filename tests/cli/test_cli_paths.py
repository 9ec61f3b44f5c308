# SPDX-License-Identifier: Apache-2.0
"""The whole command with unusual file names and with obstacles at the output path."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from opwest.cli.main import main
from requirements_support import skip_here

SOURCE = """\
#include <stdint.h>
int32_t {op}(const int16_t *x, int16_t *y);
int32_t {op}(const int16_t *x, int16_t *y)
{{
	for (int i = 0; i < 4; i++) {{
		y[i] = (int16_t)-x[i];
	}}
	return 0;
}}
"""
MANIFEST = """\
version: 1
model: {model}
objects:
  - {{files: ['{source}']}}
operators:
  {op}:
    args:
      - {{name: x, dtype: int16, shape: [4]}}
      - {{name: y, dtype: int16, shape: [4], direction: out}}
run:
  inputs: {{x: {{dtype: int16, shape: [4]}}}}
  outputs: {{y: {{dtype: int16, shape: [4]}}}}
  steps:
    - {{call: {op}, args: [x, y]}}
"""


def write_manifest(folder: str, source: str = "negate.c", model: str = "minimal", op: str = "negate") -> str:
    """Write a model to a directory; return the path of its manifest, which never starts with '-'."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    Path(folder, source).write_text(SOURCE.format(op=op))
    manifest = Path(folder, "manifest.yaml")
    manifest.write_text(MANIFEST.format(model=model, source=source, op=op), encoding="utf-8")
    return f"./{manifest}"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("folder", "source", "output"),
    [
        ("ü ☃ dir/größe 数", "größe ☃.c", "aus gäbe ☃/app"),
        ("q'dir\"x", "a b$(touch x)`y`.c", "q'out\"$(touch x)`y`;z&/app"),
        ("-dash", "-x.c", "./-o/app"),
        ("n" * 255, "s" * 253 + ".c", "o" * 255),
        (os.fsdecode(b"in\xff"), "x.c", os.fsdecode(b"out\xff")),
    ],
    ids=["unicode", "quotes", "dashes", "longest", "no UTF-8"],
)
def test_names_of_every_kind(
    folder: str, source: str, output: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if "\udcff" in folder:
        try:
            os.mkdir(folder)  # noqa: PTH102
        except OSError:
            skip_here("this file system takes no names that are not UTF-8")
    before = {path.name for path in tmp_path.iterdir()}
    manifest = write_manifest(folder, source.replace("'", ""))
    assert main(["generate", manifest, "-o", output]) == 0
    assert main(["run", output, "--host"]) == 0
    capsys.readouterr()
    assert main(["update", output]) == 0
    assert "unchanged" in capsys.readouterr().out
    made = {path.name for path in tmp_path.iterdir()} - before
    assert made <= {Path(folder).parts[0], Path(output).parts[0]}, "something was executed"


def test_names_that_are_too_long(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = write_manifest("in", model="m" * 255)
    assert main(["generate", manifest, "-o", "app"]) == 1
    assert capsys.readouterr().err == (
        f"in/manifest.yaml:2:8: error: model name '{'m' * 30}...' has 255 characters\n  expected: at most 200\n"
    )
    assert not Path("app").exists()
    assert main(["generate", write_manifest("in", model="m" * 200), "-o", "app"]) == 0
    shutil.rmtree("app")
    assert main(["generate", manifest, "-o", "o" * 256]) == 1
    deep = "/".join(["d" * 200] * 25)
    assert main(["generate", manifest, "-o", deep]) == 1
    assert capsys.readouterr().err.count("File name too long") == 2
    assert main(["generate", write_manifest("in"), "-o", "app"]) == 0


def test_update_to_an_overlong_name_changes_no_files(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", write_manifest("in"), "-o", "app"]) == 0
    before = {str(path): path.read_bytes() for path in Path("app").rglob("*") if path.is_file()}
    write_manifest("in", model="m" * 255)
    capsys.readouterr()
    assert main(["update", "app"]) == 1
    assert "has 255 characters\n  expected: at most 200" in capsys.readouterr().err
    assert {str(path): path.read_bytes() for path in Path("app").rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("loop", "loop: error: not a directory"),
        ("dangling", "dangling: error: not a directory"),
        ("dangling/app", "dangling: error: cannot write the project: File exists"),
        ("fifo", "fifo: error: not a directory"),
        ("file", "file: error: not a directory"),
        ("file/app", "file: error: cannot write the project: File exists"),
        ("/dev/null", "/dev/null: error: not a directory"),
    ],
)
def test_paths_that_are_not_directories(output: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("loop").symlink_to("loop")
    Path("dangling").symlink_to("nowhere")
    os.mkfifo("fifo")
    Path("file").write_text("mine")
    assert main(["generate", write_manifest("in"), "-o", output]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith(message), shown
    assert Path("file").read_text() == "mine" and not Path("nowhere").exists()


def test_through_a_link_to_a_directory() -> None:
    Path("real").mkdir()
    Path("link").symlink_to("real")
    assert main(["generate", write_manifest("in"), "-o", "link"]) == 0
    assert Path("link").is_symlink() and (Path("real") / "models/minimal/include/minimal.h").is_file()
    assert main(["update", "link"]) == 0


def test_links_inside_a_project_are_not_followed(capsys: pytest.CaptureFixture[str]) -> None:
    manifest = write_manifest("in")
    assert main(["generate", manifest, "-o", "app"]) == 0
    outside = Path("outside")
    outside.mkdir()
    (outside / "minimal.h").write_text("mine")
    include = Path("app/models/minimal/include")
    include.rename("moved")
    include.symlink_to(outside.absolute())
    write_manifest("in", op="other")
    capsys.readouterr()
    assert main(["generate", manifest, "-o", "app"]) == 1
    assert "opwest does not write through a symbolic link" in capsys.readouterr().err
    assert [path.name for path in outside.iterdir()] == ["minimal.h"]
    assert (outside / "minimal.h").read_text() == "mine"


# --- concurrent commands

SLOW = """\
import sys, time
from opwest.cli.main import main
from opwest.write import disk
def step(name):
    if "replace" in name:
        open("started", "w").close()
        time.sleep(0.05)
disk._step = step
sys.exit(main(sys.argv[1:]))
"""


def start(*words: str, slow: bool = False) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SLOW] if slow else [sys.executable, "-m", "opwest"]
    return subprocess.Popen([*command, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def wait_for(path: str) -> None:
    end = time.monotonic() + 60
    while not Path(path).exists():
        assert time.monotonic() < end, f"{path} was not created"
        time.sleep(0.01)


def files(folder: str) -> dict[str, bytes]:
    found = {str(path.relative_to(folder)): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}
    return {name: content for name, content in found.items() if name not in (".opwest/mutex", ".opwest/origin.json")}


@pytest.mark.slow
@pytest.mark.parametrize("killed", [False, True], ids=["done", "killed"])
def test_second_command_waits(killed: bool, tmp_path: Path) -> None:
    """The first command is slow or killed; the second still generates its project."""
    first = start("generate", write_manifest("one", op="first"), "-o", "app", slow=True)
    wait_for("started")
    second = start("generate", write_manifest("two", op="second"), "-o", "app")
    if killed:
        time.sleep(0.3)
        first.kill()
    reported, _ = second.communicate(timeout=120)
    first.communicate(timeout=120)
    if second.returncode != 0:  # on a slow machine the first took all of the ten seconds
        assert "another opwest process is writing app" in reported and not killed, reported
        assert start("generate", "./two/manifest.yaml", "-o", "app").wait(120) == 0
    assert main(["generate", "./one/manifest.yaml", "-o", "expected"]) == 0
    assert main(["generate", "./two/manifest.yaml", "-o", "expected"]) == 0
    assert files("app") == files("expected")
    assert main(["run", "app", "--host"]) == 0

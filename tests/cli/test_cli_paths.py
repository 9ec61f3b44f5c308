# SPDX-License-Identifier: Apache-2.0
"""The whole command with unusual file names and with obstacles at the output path."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from requirements_support import skip_here
from small_models import one_operator


def write_manifest(folder, source="negate.c", model="minimal", op="negate"):
    """Write a model to a directory; return the path of its manifest, which never starts with '-'."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    text = f"#include <stdint.h>\nint32_t {op}(const int16_t *x, int16_t *y) {{ y[0] = (int16_t)-x[0]; return 0; }}\n"
    Path(folder, source).write_text(text)
    manifest = Path(folder, "manifest.yaml")
    text = one_operator(op, f"[{{files: ['{source}']}}]", model=model, dtype="int16")
    manifest.write_text(text, encoding="utf-8")
    return f"./{manifest}"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
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
def test_names_of_every_kind(folder, source, output, tmp_path, succeed):
    if "\udcff" in folder:
        try:
            os.mkdir(folder)  # noqa: PTH102
        except OSError:
            skip_here("this file system takes no names that are not UTF-8")
    before = {path.name for path in tmp_path.iterdir()}
    manifest = write_manifest(folder, source.replace("'", ""))
    succeed("generate", manifest, "-o", output)
    succeed("run", output, "--host")
    assert "unchanged" in succeed("update", output).out
    made = {path.name for path in tmp_path.iterdir()} - before
    assert made <= {Path(folder).parts[0], Path(output).parts[0]}, "something was executed"


def test_names_that_are_too_long(fail):
    manifest = write_manifest("in")
    for output in ("o" * 256, "/".join(["d" * 200] * 25)):
        assert "File name too long" in fail("generate", manifest, "-o", output).err


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
def test_paths_that_are_not_directories(output, message, fail):
    Path("loop").symlink_to("loop")
    Path("dangling").symlink_to("nowhere")
    os.mkfifo("fifo")
    Path("file").write_text("mine")
    assert fail("generate", write_manifest("in"), "-o", output).err.startswith(message)
    assert Path("file").read_text() == "mine" and not Path("nowhere").exists()


# --- concurrent commands

SLOW = """\
import sys, time
from opwest.cli.main import main
from opwest.project import disk
def step(name):
    if "replace" in name:
        open("started", "w").close()
        time.sleep(0.05)
disk._step = step
sys.exit(main(sys.argv[1:]))
"""


def start(*words, slow=False):
    command = [sys.executable, "-c", SLOW] if slow else [sys.executable, "-m", "opwest"]
    return subprocess.Popen([*command, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def files(folder):
    found = {str(path.relative_to(folder)): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}
    return {name: content for name, content in found.items() if name not in (".opwest/mutex", ".opwest/origin.json")}


@pytest.mark.slow
@pytest.mark.parametrize("killed", [False, True], ids=["done", "killed"])
def test_second_command_waits(killed, succeed):
    """The first command is slow or killed; the second still generates its project."""
    first = start("generate", write_manifest("one", op="first"), "-o", "app", slow=True)
    end = time.monotonic() + 60
    while not Path("started").exists():
        assert time.monotonic() < end, "the first command did not start to write"
        time.sleep(0.01)
    second = start("generate", write_manifest("two", op="second"), "-o", "app")
    if killed:
        time.sleep(0.3)
        first.kill()
    reported, _ = second.communicate(timeout=120)
    first.communicate(timeout=120)
    if second.returncode != 0:  # on a slow machine the first took all of the ten seconds
        assert "another opwest process is writing app" in reported and not killed, reported
        assert start("generate", "./two/manifest.yaml", "-o", "app").wait(120) == 0
    for name in ("one", "two"):
        succeed("generate", f"./{name}/manifest.yaml", "-o", "expected")
    assert files("app") == files("expected")
    succeed("run", "app", "--host")

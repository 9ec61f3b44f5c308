# SPDX-License-Identifier: Apache-2.0
"""`opwest inspect` of linked images: the notes of models, damaged notes, images without models."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from c_support import golden_app
from opwest.render.records.layout import METADATA_VERSION
from requirements_support import need_compiler

MAIN = "int main(void)\n{\n\treturn 0;\n}\n"
OUTPUT = {"name": "y", "dtype": "int8", "shape": [2], "size": 2}
RECORD = {
    "format": 1,
    "opwest": "9.9.9",
    "metadata": METADATA_VERSION,
    "model": "own",
    "description": "",
    "hash": "ab" * 32,
    "targets": [],
    "inputs": [],
    "outputs": [OUTPUT],
    "devices": [],
    "pools": [],
    "constants": [],
    "steps": [{"operator": "op", "device": "", "args": ["y"]}],
}


def inspect(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "opwest", "inspect", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def link(folder: Path, *assembly: Path, options: tuple[str, ...] = ()) -> Path:
    """Return a program of the host with sources in assembly."""
    need_compiler("gcc", [], link=True)
    (folder / "main.c").write_text(MAIN)
    command = ["gcc", "-no-pie", "-o", folder / "image.elf", folder / "main.c", *assembly, *options]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "image.elf"


def image_with_note(folder: Path, description: bytes, size: int | None = None) -> Path:
    """Return an image whose note has any content; `size` is the declared one."""
    note = struct.pack("<III", 7, len(description) if size is None else size, 1) + b"opwest\0\0" + description
    note += b"\0" * (-len(note) % 4)
    lines = [f"\t.byte {', '.join(map(str, note[at : at + 16]))}" for at in range(0, len(note), 16)]
    (folder / "note.S").write_text("\n".join(['\t.section .note.opwest, "", %note', *lines, ""]))
    return link(folder, folder / "note.S", options=("-Wl,-z,noexecstack",))


def test_models_of_an_image(tmp_path):
    app = golden_app("devices", tmp_path)
    folder = app / "models" / "accelerated"
    image = link(tmp_path, folder / "note.S", folder / "constants.S", options=(f"-Wa,-I{folder / 'constants'}",))
    done = inspect(image)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == f"{image}: image with 1 model"
    assert "  pool sram: " in done.stdout and "  pool fast: " in done.stdout
    assert any(line.split() == ["1", "mix_npu", "first", "1,", "control,", "a,", "b"] for line in lines)
    (found,) = json.loads(inspect("--json", image).stdout)["result"]
    (model,) = found["models"]
    assert (found["kind"], model["model"], model["metadata"]) == ("image", "accelerated", METADATA_VERSION)
    symbols = {line.split()[2]: line.split()[0] for line in nm(image)}
    programs = [device for device in model["devices"] if device["symbol"]]
    assert programs
    for device in programs:
        assert device["address"] == int(symbols[device["symbol"]], 16)


def nm(image: Path) -> list[str]:
    text = subprocess.run(["nm", "--defined-only", image], capture_output=True, text=True, check=True).stdout
    return text.splitlines()


def test_several_models_and_stripped_symbols(tmp_path):
    app = golden_app("several", tmp_path)
    notes = [app / "models" / name / "note.S" for name in ("up", "down")]
    done = inspect(link(tmp_path, *notes))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].endswith("image with 2 models")
    assert "    not linked  " in done.stdout, "the program has no constants"
    done = inspect(link(tmp_path, *notes, options=("-s",)))
    assert done.returncode == 0, done.stderr
    assert "    unknown  " in done.stdout and "not linked" not in done.stdout


def test_programs_of_steps(tmp_path):
    device = {"name": "npu", "type": "", "program": "conv", "symbol": "conv_symbol"}
    own = {"operator": "op", "device": "npu", "args": ["y"], "program": "dense", "symbol": "main"}
    steps = [{"operator": "op", "device": "npu", "args": ["y"]}, own]
    image = image_with_note(tmp_path, json.dumps(RECORD | {"devices": [device], "steps": steps}).encode())
    done = inspect(image)
    assert (done.returncode, done.stderr) == (0, "")
    rows = [line.split() for line in done.stdout.rstrip().splitlines()[-2:]]
    assert rows == [["0", "op", "npu", "y"], ["1", "op", "npu", "(dense)", "y"]]
    (found,) = json.loads(inspect("--json", image).stdout)["result"]
    plain, programmed = found["models"][0]["steps"]
    assert plain == steps[0]
    symbols = {line.split()[2]: int(line.split()[0], 16) for line in nm(image)}
    assert programmed == own | {"address": symbols["main"]}


def test_image_without_models(tmp_path):
    done = inspect(link(tmp_path))
    assert done.returncode == 1
    assert "error: the image contains no note of a model" in done.stderr
    assert "expected: an image with models generated by opwest" in done.stderr


@pytest.mark.parametrize(
    ("description", "size", "message"),
    [
        (b'{"format": 1', None, "the note of a model is invalid JSON"),
        (b"[" * 100_000, None, "the note of a model is invalid JSON"),
        (b"\xff\xfe", None, "the note of a model is invalid JSON"),
        (
            json.dumps(RECORD | {"steps": [RECORD["steps"][0] | {"program": 5}]}).encode(),
            None,
            "the note of a model has missing or invalid members",
        ),
        (json.dumps(RECORD | {"format": 2}).encode(), None, "the note of a model has format 2"),
        (b"7", None, "the note of a model has format None"),
        (json.dumps(RECORD | {"steps": 3}).encode(), None, "the note of a model has missing or invalid members"),
        (json.dumps(RECORD | {"pools": [{"name": "x"}]}).encode(), None, "has missing or invalid members"),
        (b"{}", 4000, "truncated: a note in .note.opwest ends at byte"),
        (json.dumps(RECORD).encode() + bytes(8), len(json.dumps(RECORD)), "truncated: a note in .note.opwest begins"),
        (json.dumps(RECORD | {"format": True}).encode(), None, "has missing or invalid members"),
        (json.dumps(RECORD | {"metadata": 10**4299}).encode(), None, "has missing or invalid members"),
        (json.dumps(RECORD | {"outputs": [OUTPUT | {"size": -2}]}).encode(), None, "has missing or invalid members"),
    ],
)
def test_damaged_notes(tmp_path, description, size, message):
    done = inspect(image_with_note(tmp_path, description, size))
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_control_characters_are_escaped(tmp_path):
    text = json.dumps(RECORD | {"description": "a\u001b[31m"}).encode()
    done = inspect(image_with_note(tmp_path, text))
    assert done.returncode == 0, done.stderr
    assert "model own: a\\x1b[31m" in done.stdout

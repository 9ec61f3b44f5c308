# SPDX-License-Identifier: Apache-2.0
"""`opwest inspect` of linked images: the notes of models, damaged notes, images without models."""

import json
import struct
import subprocess
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


@pytest.fixture
def inspect(opwest):
    """Return a function that runs `opwest inspect`."""
    return lambda *arguments: opwest("inspect", *arguments)


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


def test_models_of_an_image(inspect, tmp_path):
    app = golden_app("devices", tmp_path)
    folder = app / "models" / "accelerated"
    image = link(tmp_path, folder / "note.S", folder / "constants.S", options=(f"-Wa,-I{folder / 'constants'}",))
    done = inspect(image)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == f"{image}: image with 1 model"
    assert "  pool sram: " in done.out and "  pool fast: " in done.out
    assert any(line.split() == ["1", "mix_npu", "first", "1,", "control,", "a,", "b"] for line in lines)
    (found,) = json.loads(inspect("--json", image).out)["result"]
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


def test_several_models_and_stripped_symbols(inspect, tmp_path):
    app = golden_app("several", tmp_path)
    notes = [app / "models" / name / "note.S" for name in ("up", "down")]
    done = inspect(link(tmp_path, *notes))
    assert done.code == 0, done.err
    assert done.out.splitlines()[0].endswith("image with 2 models")
    assert "    not linked  " in done.out, "the program has no constants"
    done = inspect(link(tmp_path, *notes, options=("-s",)))
    assert done.code == 0, done.err
    assert "    unknown  " in done.out and "not linked" not in done.out


def test_programs_of_steps(inspect, tmp_path):
    device = {"name": "npu", "type": "", "program": "conv", "symbol": "conv_symbol"}
    own = {"operator": "op", "device": "npu", "args": ["y"], "program": "dense", "symbol": "main"}
    steps = [{"operator": "op", "device": "npu", "args": ["y"]}, own]
    image = image_with_note(tmp_path, json.dumps(RECORD | {"devices": [device], "steps": steps}).encode())
    done = inspect(image)
    assert (done.code, done.err) == (0, "")
    rows = [line.split() for line in done.out.rstrip().splitlines()[-2:]]
    assert rows == [["0", "op", "npu", "y"], ["1", "op", "npu", "(dense)", "y"]]
    (found,) = json.loads(inspect("--json", image).out)["result"]
    plain, programmed = found["models"][0]["steps"]
    assert plain == steps[0]
    symbols = {line.split()[2]: int(line.split()[0], 16) for line in nm(image)}
    assert programmed == own | {"address": symbols["main"]}


def test_image_without_models(inspect, tmp_path):
    done = inspect(link(tmp_path))
    assert done.code == 1
    assert "error: the image contains no note of a model" in done.err
    assert "expected: an image with models generated by opwest" in done.err


MEMBERS = "the note of a model has missing or invalid members"
WITH_PROGRAM = {"steps": [RECORD["steps"][0] | {"program": 5}]}
DAMAGED = {
    "cut": (b'{"format": 1', "the note of a model is invalid JSON"),
    "deep": (b"[" * 100_000, "the note of a model is invalid JSON"),
    "no UTF-8": (b"\xff\xfe", "the note of a model is invalid JSON"),
    "program": (RECORD | WITH_PROGRAM, MEMBERS),
    "another format": (RECORD | {"format": 2}, "the note of a model has format 2"),
    "a number": (b"7", "the note of a model has format None"),
    "steps": (RECORD | {"steps": 3}, MEMBERS),
    "pools": (RECORD | {"pools": [{"name": "x"}]}, MEMBERS),
    "format": (RECORD | {"format": True}, MEMBERS),
    "metadata": (RECORD | {"metadata": 10**4299}, MEMBERS),
    "outputs": (RECORD | {"outputs": [OUTPUT | {"size": -2}]}, MEMBERS),
}


@pytest.mark.parametrize(("content", "message"), DAMAGED.values(), ids=DAMAGED)
def test_damaged_notes(inspect, tmp_path, content, message):
    description = content if isinstance(content, bytes) else json.dumps(content).encode()
    done = inspect(image_with_note(tmp_path, description))
    assert done.code == 1 and message in done.err


@pytest.mark.parametrize(
    ("description", "size", "message"),
    [
        (b"{}", 4000, "truncated: a note in .note.opwest ends at byte"),
        (json.dumps(RECORD).encode() + bytes(8), len(json.dumps(RECORD)), "truncated: a note in .note.opwest begins"),
    ],
)
def test_wrong_sizes_of_notes(inspect, tmp_path, description, size, message):
    done = inspect(image_with_note(tmp_path, description, size))
    assert done.code == 1 and message in done.err


def test_control_characters_are_escaped(inspect, tmp_path):
    text = json.dumps(RECORD | {"description": "a\u001b[31m"}).encode()
    done = inspect(image_with_note(tmp_path, text))
    assert done.code == 0, done.err
    assert "model own: a\\x1b[31m" in done.out

# SPDX-License-Identifier: Apache-2.0
"""Comparisons on the host: formats of files, labels, tolerances."""

import shutil
import subprocess

import numpy as np
import pytest
from opwest.base.diagnostics import Diagnostics, Location, OpwestError
from opwest.cli.run import tolerances_of
from opwest.imports.comparison import _difference
from opwest.runs.arrays import label_lines
from opwest.runs.compare import Tolerance, Tolerances, difference, read_tolerances
from opwest.runs.compile import Format, HostCompiler, format_of, prefix_of, translated
from requirements_support import need

# --- The comparison of the operators of a model with those of a reference

WHERE = (0, 4, "y")
PLACE = Location("m.onnx")


def compared(found, expected):
    return _difference(np.asarray(found, np.float32), np.asarray(expected, np.float32), WHERE, PLACE, None)


@pytest.mark.parametrize(
    ("found", "expected", "differing", "most"),
    [
        ([np.nan, np.nan], [0, 0], "2 of 2 values", "inf"),
        ([np.nan, 1], [0, 1], "1 of 2 values", "inf"),
        *[([value, 1], [np.inf, 1], "1 of 2 values", "inf") for value in (1, -np.inf, np.nan)],
        ([100.5], [100], "1 of 1 value", "0.5"),
    ],
)
def test_results_that_differ_are_refused(found, expected, differing, most):
    with pytest.raises(OpwestError) as error:
        compared(found, expected)
    text = str(error.value)
    assert "result 'y' of step 4 differs" in text and f"{differing} of input 0, by at most {most}" in text


def test_close_and_equal_results():
    assert 0.004 < compared([100.005], [100]) < 0.006
    assert compared([np.nan, np.inf, 1], [np.nan, np.inf, 1]) == 0


# --- The difference between an output and its reference


def test_position_of_the_largest_error():
    found = difference(np.array([[1, 2], [3, 4]], np.int8), np.array([[1, 2.5], [-100, 4]]))
    assert (found.elements, found.differing, found.largest, found.at) == (4, 2, 103, (1, 0))
    assert found.mean == (0.5 + 103) / 4
    assert found.as_text().startswith("2 of 4 elements differ from the reference: largest error 103 at [1, 0]")


def test_integers_beyond_double_precision():
    big = 2**63 - 1
    found = difference(np.array([big], np.int64), np.array([big - 1], np.int64))
    assert (found.differing, found.largest) == (1, 1)
    found = difference(np.array([2**64 - 1], np.uint64), np.array([-1], np.int64))
    assert found.largest == 2.0**64


def test_invalid_numbers():
    values = np.array([np.nan, np.inf, -np.inf, np.nan], np.float32)
    assert difference(values, values.copy()).differing == 0
    found = difference(values, np.array([np.nan, np.inf, np.inf, 1.0]))
    assert (found.differing, found.largest, found.at) == (2, np.inf, (2,))


def test_bool_and_scalars():
    assert difference(np.array([True, False]), np.array([True, True])).differing == 1
    assert difference(np.array(3, np.int8), np.array(5, np.int8)).largest == 2


@pytest.mark.parametrize(
    ("actual", "expected", "tolerance", "beyond"),
    [
        ([1.0, 2.0], [1.1, 2.3], Tolerance(0.2), 1),
        ([1.0, 2.0], [1.1, 2.3], Tolerance(0.0, 0.2), 0),
        ([100.0, -100.0], [110.0, -111.0], Tolerance(1.0, 0.0825), 1),
        ([np.nan, np.inf, 1.0], [np.nan, np.inf, 1.0], Tolerance(0.0), 0),
        ([np.nan, np.inf, 1.0, -np.inf], [1.0, 1.0, np.inf, np.inf], Tolerance(1e30, 1.0), 4),
    ],
)
def test_elements_beyond_the_tolerance(actual, expected, tolerance, beyond):
    found = difference(np.array(actual), np.array(expected), tolerance)
    assert found.beyond == beyond and found.as_json()["beyond_tolerance"] == beyond


def test_integers_and_tolerances():
    big = np.array([2**63 - 1, -(2**63)], np.int64)
    assert difference(big, np.array([2**63 - 3, -(2**63)], np.int64), Tolerance(1.0)).beyond == 1
    assert difference(big, np.array([2**63 - 3, -(2**63)], np.int64), Tolerance(2.0)).beyond == 0
    found = difference(np.array([1, 2], np.int8), np.array([1, 4], np.int8), Tolerance(1, 0.25))
    assert found.as_text().endswith("mean 1; all within the tolerance 1 + 0.25 * |reference|")
    assert (
        difference(np.array([1], np.int8), np.array([4], np.int8), Tolerance(1))
        .as_text()
        .endswith("mean 3; 1 beyond the tolerance 1")
    )


def tolerances(words, record, compared, faults):
    given = {name: Tolerance(*pair) for name, pair in tolerances_of(words, faults).items()}
    return read_tolerances(given, record, compared, faults)


def test_tolerances_of_the_command_line_and_of_the_manifest():
    record = {"tolerances": [{"output": "y", "absolute": 3, "relative": 0.5}]}
    faults = Diagnostics()
    assert tolerances([], record, ["y", "z"], faults).of("y") == Tolerance(3, 0.5)
    assert tolerances([], record, ["y", "z"], faults).of("z") == Tolerance()
    found = tolerances(["z=.5,1e-3", "2"], record, ["y", "z"], faults)
    assert (found.of("z"), found.of("y")) == (Tolerance(0.5, 1e-3), Tolerance(2.0))
    assert tolerances(["0"], record, ["y"], faults).of("y") == Tolerance()
    assert isinstance(found, Tolerances) and not len(faults)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["x"], "invalid --tolerance 'x'"),
        (["-1"], "invalid --tolerance '-1'"),
        (["nan"], "invalid --tolerance 'nan'"),
        (["1e999"], "invalid --tolerance '1e999'"),
        (["y=1,2,3"], "invalid --tolerance 'y=1,2,3'"),
        (["1", "2"], "duplicate --tolerance '2' for all tensors"),
        (["y=1", "y=2"], "duplicate tolerance 'y'"),
        (["w=1"], "--tolerance has no effect: 'w' has no reference"),
        (["y=1", "z=1", "3"], "--tolerance for all tensors has no effect: each tensor has its own"),
    ],
)
def test_invalid_tolerances(given, message):
    faults = Diagnostics()
    tolerances(given, None, ["y", "z"], faults)
    assert [d.message for d in faults] == [message]


def test_a_tolerance_without_references_has_no_effect():
    faults = Diagnostics()
    tolerances(["1"], None, [], faults)
    assert [d.message for d in faults] == ["--tolerance has no effect: no tensor has a reference"]


# --- The classes of outputs, by name

LABELS = ("silence", "yes", "no")


def test_class_numbers_and_scores():
    assert label_lines(np.array([2], np.int32), LABELS, frames=False) == ["  no"]
    assert label_lines(np.array(2, np.int32), LABELS, frames=False) == ["  no"]
    assert label_lines(np.array([[-3, 90, 1]], np.int8), LABELS, frames=False) == ["  yes"]
    assert label_lines(np.array([1, 2], np.int32), LABELS, frames=False) == ["  yes, no"]
    assert label_lines(np.array([3], np.int32), LABELS, frames=False) == ["  no label 3"]
    assert label_lines(np.array([3], np.int32), (), frames=False) == []


def test_equal_classes_of_a_stream_are_one_line():
    scores = np.zeros([6, 1, 3], np.float32)
    for frame, label in enumerate([0, 0, 1, 1, 1, 0]):
        scores[frame, 0, label] = 1
    expected = ["  frames 0 to 1: silence", "  frames 2 to 4: yes", "  frame 5: silence"]
    assert label_lines(scores, LABELS, frames=True) == expected
    assert label_lines(scores.argmax(axis=2).astype(np.int32), LABELS, frames=True) == expected
    assert label_lines(np.array([1], np.int32), LABELS, frames=True) == ["  frame 0: yes"]


# --- Emitted assembly and the host's compiler for Windows (COFF) and macOS (Mach-O); nothing runs on these systems

ELF = """/* Generated. */
	.section .rodata.m_w, "a", %progbits
	.global m_w
	.type m_w, %object
	.balign 16
m_w:
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	.incbin "big.bin"
#else
	.incbin "w.bin"
#endif
	.size m_w, 4

	/* Program p. */
	.section .rodata.opwest_program_0, "aG", %progbits, opwest_program_0, comdat
	.weak opwest_program_0
	.type opwest_program_0, %object
	.balign 16
opwest_program_0:
	.incbin "w.bin"
	.size opwest_program_0, 4

#if defined(__linux__)
	.section .note.GNU-stack, "", %progbits
#endif
"""
TARGETS: dict[str, tuple[Format, str, bytes]] = {
    "x86_64-w64-mingw32": ("coff", "", b"\x64\x86"),
    "i686-w64-mingw32": ("coff", "_", b"\x4c\x01"),
    "x86_64-apple-macosx": ("macho", "_", b"\xcf\xfa\xed\xfe"),
    "arm64-apple-macosx": ("macho", "_", b"\xcf\xfa\xed\xfe"),
}


@pytest.mark.parametrize("target", TARGETS)
def test_assembly_of_other_formats(target, tmp_path):
    need("clang")
    form, prefix, magic = TARGETS[target]
    clang = ["clang", f"--target={target}"]
    empty = tmp_path / "empty.c"
    empty.write_bytes(b"")
    macros = subprocess.run(
        [*clang, "-dM", "-E", empty], capture_output=True, text=True, encoding="utf-8", check=True
    ).stdout
    assert format_of(macros) == form and prefix_of(macros) == prefix
    text = translated(ELF, form, prefix)
    assert not any(word in text for word in ("%progbits, o", ".type ", ".size ", ".rodata."))
    (tmp_path / "constants.S").write_text(text, encoding="utf-8", newline="\n")
    (tmp_path / "w.bin").write_bytes(b"\1\2\3\4")
    (tmp_path / "user.c").write_text("extern const int m_w;\nint f(void);\nint f(void) { return m_w; }\n", "utf-8")
    for name in ("constants.S", "user.c"):
        command = [*clang, f"-I{tmp_path}", "-c", tmp_path / name, "-o", tmp_path / f"{name}.o"]
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / f"{name}.o").read_bytes().startswith(magic)
    content = (tmp_path / "constants.S.o").read_bytes()
    for symbol in ("m_w", "opwest_program_0"):
        assert f"{prefix}{symbol}\0".encode() in content
    assert content.count(b"\1\2\3\4") == 2


@pytest.mark.parametrize("command", ["cl", "cl.exe", r"C:\VC\bin\Hostx64\x64\CL.EXE", "clang-cl"])
def test_msvc_is_refused(command, tmp_path, monkeypatch):
    monkeypatch.setenv("CC", f"'{command}'")
    with pytest.raises(OpwestError) as caught:
        HostCompiler(tmp_path, None)
    [found] = caught.value.diagnostics
    assert found.message == f"$CC is '{command}', a compiler of MSVC, which has no .incbin and no GNU C"
    assert found.expected == "gcc or clang for MinGW (x86_64-w64-mingw32)"
    assert found.hint == "install MinGW-w64, or set CC to 'clang --target=x86_64-w64-mingw32'"


def test_clang_for_msvc_is_refused(tmp_path, monkeypatch):
    need("clang")
    monkeypatch.setenv("CC", "clang --target=x86_64-pc-windows-msvc")
    with pytest.raises(OpwestError) as caught:
        HostCompiler(tmp_path, None).pointer_bits()
    assert "the compiler 'clang' compiles for MSVC, which has no .incbin" in caught.value.diagnostics[0].message


def test_compiler_is_the_first_one_found(tmp_path, monkeypatch):
    """MinGW has a gcc, and macOS has clang, but a cc is not certain."""
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: name if name in ("gcc", "clang") else None)
    assert HostCompiler(tmp_path, None).command == ["gcc"]
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(OpwestError, match="C compiler 'cc' not found"):
        HostCompiler(tmp_path, None)

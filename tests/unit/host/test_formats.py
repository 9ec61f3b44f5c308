# SPDX-License-Identifier: Apache-2.0
"""Emitted assembly and the host's compiler for Windows (COFF) and macOS (Mach-O); nothing runs on these systems."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from opwest.diagnostics import OpwestError
from opwest.host.compile import HostCompiler
from opwest.host.formats import Format, format_of, prefix_of, translated
from requirements_support import need

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
def test_assembly_of_other_formats(target: str, tmp_path: Path) -> None:
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
def test_msvc_is_refused(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", f"'{command}'")
    with pytest.raises(OpwestError) as caught:
        HostCompiler(tmp_path, None)
    [found] = caught.value.diagnostics
    assert found.message == f"$CC is '{command}', a compiler of MSVC, which has no .incbin and no GNU C"
    assert found.expected == "gcc or clang for MinGW (x86_64-w64-mingw32)"
    assert found.hint == "install MinGW-w64, or set CC to 'clang --target=x86_64-w64-mingw32'"


def test_clang_for_msvc_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("clang")
    monkeypatch.setenv("CC", "clang --target=x86_64-pc-windows-msvc")
    with pytest.raises(OpwestError) as caught:
        HostCompiler(tmp_path, None).pointer_bits()
    assert "the compiler 'clang' compiles for MSVC, which has no .incbin" in caught.value.diagnostics[0].message


def test_compiler_is_the_first_one_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MinGW has a gcc, and macOS has clang, but a cc is not certain."""
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: name if name in ("gcc", "clang") else None)
    assert HostCompiler(tmp_path, None).command == ["gcc"]
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(OpwestError, match="C compiler 'cc' not found"):
        HostCompiler(tmp_path, None)

# SPDX-License-Identifier: Apache-2.0
"""Damaged files end in ObjectError or in a value, quickly; never in another exception."""

import struct
import time
from pathlib import Path

import pytest
from elf_writer import archive_of, arm_object, build_elf
from objects_factory import compile_object
from opwest.objects.facts import ObjectError
from opwest.objects.inspect import inspect_object, read_member
from opwest.objects.rename import rename_symbols
from opwest.objects.report import as_json, as_text


def survive(path: Path, content: bytes) -> None:
    """Read hostile content with every reader."""
    path.write_bytes(content)
    try:
        item = inspect_object(path)
    except ObjectError as fault:
        assert fault.message
        return
    as_text("x", item)
    as_json("x", item)


def survive_rename(content: bytes) -> None:
    try:
        renamed = rename_symbols(content, {"op": "model__op", "memcpy": "model__memcpy"})
        read_member("x.o", renamed)
    except ObjectError as fault:
        assert fault.message


@pytest.fixture(params=["arm", "wide", "archive"])
def content(request: pytest.FixtureRequest) -> bytes:
    return {"arm": arm_object(), "wide": build_elf(), "archive": archive_of(arm_object(), build_elf(), build_elf())}[
        request.param
    ]


def test_undamaged_files_are_readable(tmp_path: Path) -> None:
    one = read_member("x.o", arm_object())
    assert one.abi.arch == "v7-M" and one.abi.float_abi == "soft" and not one.faults
    (tmp_path / "x.a").write_bytes(archive_of(arm_object(), build_elf(), build_elf()))
    item = inspect_object(tmp_path / "x.a")
    assert [m.name for m in item.members] == ["a_rather_long_member_name.o", "two.o", "three.o"]  # type: ignore[union-attr]


def test_truncated_at_every_byte(tmp_path: Path, content: bytes) -> None:
    started = time.process_time()
    for size in range(len(content)):
        survive(tmp_path / "x.o", content[:size])
        survive_rename(content[:size])
    assert time.process_time() - started < 60


def test_truncated_compiler_output(tmp_path: Path) -> None:
    whole = compile_object(tmp_path, "int op(int a) { static int n; return a + n++; }").read_bytes()
    for size in range(len(whole)):
        with pytest.raises(ObjectError, match="truncated"):
            read_member("x.o", whole[:size])


@pytest.mark.parametrize("value", [0xFFFFFFFFFFFFFFFF, 1 << 63, 1 << 40])
def test_huge_numbers_in_the_section_table(value: int) -> None:
    whole = build_elf()
    (table,) = struct.unpack_from("<Q", whole, 40)
    for section in range((len(whole) - table) // 64):
        for field in (8, 24, 32, 56):
            content = bytearray(whole)
            struct.pack_into("<Q", content, table + section * 64 + field, value)
            try:
                read_member("x.o", bytes(content))
            except ObjectError as fault:
                assert fault.message


def test_section_counts_that_do_not_fit() -> None:
    content = bytearray(build_elf())
    struct.pack_into("<H", content, 60, 0)  # the count moves to section 0 …
    (table,) = struct.unpack_from("<Q", content, 40)
    struct.pack_into("<Q", content, table + 32, 1 << 60)  # … which promises too many
    with pytest.raises(ObjectError, match="truncated: the section table ends at byte"):
        read_member("x.o", bytes(content))


def test_truncation_names_the_section() -> None:
    content = bytearray(build_elf())
    (table,) = struct.unpack_from("<Q", content, 40)
    struct.pack_into("<Q", content, table + 64 + 32, 100_000)
    with pytest.raises(
        ObjectError, match=rf"truncated: section \.text ends at byte 100064, the file has {len(content)}"
    ):
        read_member("x.o", bytes(content))


def test_names_in_one_long_string_take_linear_time() -> None:
    symbols = [("x" * 16_000, 1, 2, 1)] * 2 + [("y", 1, 2, 1)]
    content = bytearray(build_elf(symbols=symbols))
    started = time.process_time()
    read_member("x.o", bytes(content))
    assert time.process_time() - started < 2


def test_names_cannot_reach_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "x.o").write_bytes(build_elf(symbols=[("\x1b[2Jop", 1, 2, 1)]))
    assert "\x1b" not in as_text("x.o", inspect_object(tmp_path / "x.o"))

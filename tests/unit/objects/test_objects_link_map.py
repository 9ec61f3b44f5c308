# SPDX-License-Identifier: Apache-2.0
"""Map files of linkers: lines of GNU ld and of lld."""

import pytest
from opwest.objects.facts import ObjectError
from opwest.objects.link_map import Piece, read_map

GNU = """Archive member included to satisfy reference by file (symbol)

lib/libm.a(e_exp.o)           app/libapp.a(main.c.obj) (exp)

Discarded input sections

 .text          0x00000000       0x10 app/libapp.a(main.c.obj)

Memory Configuration

Linker script and memory map

LOAD app/libapp.a

text            0x000000c0      0x1b0
 *(SORT_BY_ALIGNMENT(.text))
 .text.main     0x000010c8       0x88 app/libapp.a(main.c.obj)
                0x000010c8                main
 *fill*         0x00001150        0x2
 .text.a_function_with_a_long_name
                0x00001152       0x24 my dir/run.c.obj
                0x00001152                a_function_with_a_long_name
 .text.empty    0x00001176        0x0 app/libapp.a(main.c.obj)
                0x00001176                        . = ALIGN (0x4)

a_section_with_a_long_name
                0x20000000       0x53 load address 0x00001200
 .rodata.str1.1
                0x20000000       0x51 C:\\work\\libx.a(y.obj)
                                 0x53 (size before relaxing)

/DISCARD/
 .comment       0x00000000       0x27 app/libapp.a(main.c.obj)
OUTPUT(zephyr/zephyr.elf elf32-littlearm)
"""


def test_lines_of_gnu_ld():
    found = read_map(GNU)
    assert found.pieces == (
        Piece("text", ".text.main", 0x10C8, 0x88, "app/libapp.a(main.c.obj)"),
        Piece("text", ".text.a_function_with_a_long_name", 0x1152, 0x24, "my dir/run.c.obj", 2),
        Piece("a_section_with_a_long_name", ".rodata.str1.1", 0x20000000, 0x51, "C:\\work\\libx.a(y.obj)"),
    )
    assert found.outputs["text"] == (0xC0, 0x1B0)
    assert found.outputs["a_section_with_a_long_name"] == (0x20000000, 0x53)
    parts = [(piece.archive, piece.member) for piece in found.pieces]
    assert parts == [("libapp.a", "main.c.obj"), ("", "run.c.obj"), ("libx.a", "y.obj")]


LLD = """             VMA              LMA     Size Align Out     In      Symbol
          200158           200158        5     1 .rodata
          200158           200158        5     1         libmain.a(main.o):(.rodata.text)
          200158           200158        5     1                 text
          20115d           20115d       23     1 .text
          20115d           20115d        0     1         libmain.a(main.o):(.text)
          20115d           20115d        e     1         libmain.a(main.o):(.text.twice)
          20115d           20115d        e     1                 twice
          201170           201170       15     4         libmain.a(main.o):(.text.main)
          201170           201170       15     1                 main
               0                0       42     1 .comment
               0                0       42     1         <internal>:(.comment)
"""
"""As lld 14 writes it."""


def test_lines_of_lld():
    found = read_map(LLD)
    assert found.pieces == (
        Piece(".rodata", ".rodata.text", 0x200158, 5, "libmain.a(main.o)"),
        Piece(".text", ".text.twice", 0x20115D, 14, "libmain.a(main.o)"),
        Piece(".text", ".text.main", 0x201170, 0x15, "libmain.a(main.o)", 5),
        Piece(".comment", ".comment", 0, 0x42, "<internal>"),
    )
    assert found.outputs[".text"] == (0x20115D, 0x23)


@pytest.mark.parametrize("text", ["", "hello\n", "a\nb\n"])
def test_other_files(text):
    with pytest.raises(ObjectError, match="not a map file of GNU ld or lld"):
        read_map(text)

# SPDX-License-Identifier: Apache-2.0
"""The arrays of C and C++ sources: spellings of lists and declarations, sizes, conditions, hostile sources."""

import random
import struct

import pytest
from campaign import sized
from opwest.objects.c_arrays import CArray, c_arrays, may_have_arrays
from opwest.objects.facts import ObjectError
from scaling import check_linear

DATA = bytes([0x1C, 0, 0, 0, *b"TFL3", 0x80, 0xFF, 39, 47, 42, 92, 34, 44, 200, 127, 1, 2])
LIST = ", ".join(f"0x{byte:02x}" for byte in DATA)
LINES = ",\n  ".join(", ".join(f"0x{byte:02x}" for byte in DATA[at : at + 12]) for at in range(0, len(DATA), 12))
XXD = f"unsigned char m_tflite[] = {{\n  {LINES}\n}};\nunsigned int m_tflite_len = {len(DATA)};\n"
OCTAL = "".join(f"\\{byte:03o}" for byte in DATA)
HEXADECIMAL = '" "'.join(f"\\x{byte:02x}" for byte in DATA)
SPELT = {39: "'\\''", 92: "'\\\\'", 0: "'\\0'"}
CHARACTERS = ", ".join(SPELT.get(b, f"'{chr(b)}'" if 32 <= b < 127 else f"'\\x{b:02x}'") for b in DATA)
SIGNED = ", ".join(str(byte - 256 if byte > 127 else byte) for byte in DATA)
WORDS = ", ".join(f"0x{word:08x}UL" for word in struct.unpack("<5I", DATA))
ALIGN = "#ifdef __has_attribute\n#define DATA_ALIGN __attribute__((aligned(4)))\n#else\n#define DATA_ALIGN\n#endif\n"
SPELLINGS = {
    "xxd -i": XXD,
    "hexadecimal": f"const unsigned char m_tflite[] = {{{LIST}}};",
    "upper case": f"const uint8_t m_tflite[] = {{{LIST.upper()}}};",
    "decimal": f"const unsigned char m_tflite[{len(DATA)}] = {{ {', '.join(map(str, DATA))}, }};",
    "octal": f"static const uint8_t m_tflite[] = {{{', '.join(f'0{byte:o}' for byte in DATA)}}};",
    "binary": f"constexpr uint8_t m_tflite[] = {{{', '.join(f'0b{byte:b}u' for byte in DATA)}}};",
    "binary of Arduino": f"const byte m_tflite[] PROGMEM = {{{', '.join(f'B{byte:b}' for byte in DATA)}}};",
    "characters": f"static const char m_tflite[] = {{{CHARACTERS}}};",
    "signed": f"const signed char m_tflite[] = {{{SIGNED}}};",
    "casts": f"const char m_tflite[] = {{{', '.join(f'(char)0x{byte:x}' for byte in DATA)}}};",
    "parentheses": f"const int8_t m_tflite[] = {{{', '.join(f'(int8_t)({byte - 256 if byte > 127 else byte})' for byte in DATA)}}};",  # noqa: E501
    "octal string": f'const char m_tflite[] = "{OCTAL}";',
    "strings": f'const unsigned char m_tflite[{len(DATA) + 1}] =\n  "{HEXADECIMAL}";',
    "string in braces": f'const char m_tflite[] = {{"{HEXADECIMAL}"}};',
    "pointer": f'const char *m_tflite = "{OCTAL}";',
    "words": f"const uint32_t m_tflite[] = {{{WORDS}}};",
    "64 bits": f"const ai_u64 m_tflite[3] = {{{', '.join(f'{word:#x}' for word in struct.unpack('<3Q', DATA.ljust(24, bytes(1))))}}};\n"  # noqa: E501
    f"#define M_TFLITE_LEN {len(DATA)}\n",
    "alignas": f"alignas(16) const unsigned char m_tflite[] = {{{LIST}}};",
    "attribute": f'__attribute__((aligned(16), section(".model[0]"))) const unsigned char m_tflite[] = {{{LIST}}};',
    "attribute behind": f"const unsigned char m_tflite[] __attribute__((aligned(16))) = {{{LIST}}};",
    "attribute of C++": f"[[gnu::aligned(16)]] static constexpr std::uint8_t m_tflite[] = {{{LIST}}};",
    "macro": f"{ALIGN}const unsigned char m_tflite[] DATA_ALIGN = {{{LIST}}};",
    "macros before": f"EXT_RAM_ATTR static DRAM_ATTR const uint8_t PROGMEM m_tflite[] = {{{LIST}}};",
    "array of C++": f"const std::array<uint8_t, {len(DATA)}> m_tflite = {{{LIST}}};",
    "two braces": f"static constexpr std::array<const unsigned char, {len(DATA)}> m_tflite{{{{{LIST}}}}};",
    "namespaces": f"namespace a {{ namespace b {{\nalignas(8) const unsigned char m_tflite[] = {{{LIST}}};\n}} }}",
    "C linkage": f'#ifdef __cplusplus\nextern "C" {{\n#endif\nconst unsigned char m_tflite[] = {{{LIST}}};\n'
    "#ifdef __cplusplus\n}\n#endif\n",
    "guard": f"#ifndef M_H\n#define M_H\n#define SIZE {len(DATA)}\nextern const unsigned char m_tflite[SIZE];\n"
    f"const unsigned char m_tflite[SIZE] = {{{LIST}}};\n#endif\n",
    "comments": "const unsigned char /* the model */ m_tflite[] = { // '{' and } of it\n"
    + "".join(f"0x{byte:02x}, // {at}: {{ 0, 1 }};\n" for at, byte in enumerate(DATA))
    + "};",
    "after others": "int n = 3; enum { A, B };\nstatic int f(void) { return n; }\n"
    f'const char *t = "{{1, 2}}";\n{XXD}',
    "if 0": f"#if 0\nconst unsigned char m_tflite[] = {{1, 2}};\n#else\n{XXD}#endif\n",
    "typedef": f"typedef unsigned char octet;\nconst octet m_tflite[] = {{{LIST}}};",
    "in a function": f"int f(void)\n{{\n\tstatic const char m_tflite[] = {{{LIST}}};\n\treturn m_tflite[0];\n}}\n",
    "CR LF": XXD.replace("\n", "\r\n"),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_spellings(name):
    found = {array.name: array for array in c_arrays(SPELLINGS[name].encode())}
    array = found["m_tflite"]
    assert array.content == DATA and array.problem is None, array
    assert may_have_arrays(SPELLINGS[name].encode())


def test_a_list_alone():
    """What `xxd -i` prints for its standard input has no declaration."""
    assert c_arrays(f"  {LINES}\n".encode()) == [CArray("", 1, DATA)]


PROBLEMS = [
    (f"char x[19] = {{{LIST}}};", "is declared with 19 elements and has 20 in its list"),
    (f"#define N 30\nchar x[N] = {{{LIST}}};", "is declared with 30 elements and has 20 in its list"),
    (f"char x[] = {{{LIST}}};\nconst int x_len = 21;", "has 20 bytes, and 'x_len' is 21"),
    (f"char gModel[] = {{{LIST}}};\nconst unsigned int gModelSize = 12u;", "has 20 bytes, and 'gModelSize' is 12"),
    (f"char x[] = {{{LIST},\n 0x", "has no closing brace: the file is truncated"),
    ("char x[] = { 1, f(2, {", "has no closing brace: the file is truncated"),
    ("char x[] = { 1, 256 };", "has the element '256', which has more than 8 bits"),
    ("char x[] = { 1, , 2 };", "has the element ''"),
    ("char x[] = { 1, 09 };", "has the element '09'"),
    ("char x[] = { 1, ONE, 2 };", "has the element 'ONE'"),
    ("char x[] = { 1, 'ab' };", "has the element 'invalid'"),
    (f"char x[] = {{ {'9' * 5000} }};", f"has the element '{'9' * 37}...'"),
    ('char x[] = {\n#include "m.inc"\n};', "has its content in the file 'm.inc'"),
    ("char x[] = {\n#embed <m.tflite>\n};", "has its content in the file 'm.tflite'"),
    ("char x[] = {\n1,\n#ifdef A\n2,\n#endif\n};", "has preprocessor conditions in its list"),
    ("char x[] = { 1 + ONE, 2 };", "has the element '1 + ONE'"),
    ("char x[] = { sizeof(a[0]) };", "has elements that are no literals, near 'sizeof'"),
]


@pytest.mark.parametrize(("source", "problem"), PROBLEMS)
def test_problems(source, problem):
    [array] = c_arrays(source.encode())
    assert (array.name.lower().startswith(("x", "gmodel")), array.problem) == (True, problem)
    assert array.way_out


def test_what_is_no_array_of_bytes():
    source = """
        float f[] = {1, 2}; double d[2] = {1.0, 2.0}; const char *const names[] = {"a", "b"};
        struct s { int a; } s[] = {{1}}; uint8_t image[2][2] = {{1, 2}, {3, 4}}; handle_t h[] = {A(b), 0};
        int one = {1}; void f(void) { if (a[0] == 1) { g(); } char c[2]; }
    """
    assert c_arrays(source.encode()) == []


def test_lines_and_alternatives():
    """Both branches of a condition are arrays: the user chooses one."""
    source = f"#ifdef SMALL\nchar m[] = {{{LIST}}};\n#else\nchar m[] = {{1, 2}};\n#endif\n"
    assert [(array.name, array.line, len(array.content)) for array in c_arrays(source.encode())] == [
        ("m", 2, 20),
        ("m", 4, 2),
    ]


def test_numbers_of_thousands_of_digits():
    digits = "9" * 5000
    source = f"#define N {digits}\nconst int m_len = {digits};\nchar m[{digits}] = {{1, 2}};\n"
    assert [array.content for array in c_arrays(source.encode())] == [b"\1\2"]


def test_padding_behind_the_length():
    source = f"const uint32_t m[] = {{{WORDS}, 0}};\nunsigned m_size = {len(DATA)};"
    assert [array.content for array in c_arrays(source.encode())] == [DATA]


def test_texts_that_are_no_sources(monkeypatch):
    monkeypatch.setattr("opwest.objects.c_arrays._MAX_TOKENS", 1000)
    with pytest.raises(ObjectError, match="NUL"):
        c_arrays(b"char x[] = {1};\0")
    with pytest.raises(ObjectError, match="words besides its arrays"):
        c_arrays(b"x;" * 501)
    assert not may_have_arrays(b"hello world")


HOSTILE = ("{", "char x[]={;", 'a=""', "{{", "x[]=", "#if 0\n", "char x[]={1};", "(", "'", '"', "/*", "<array<", "a[[")


@pytest.mark.parametrize("part", HOSTILE)
def test_repeated_parts_take_linear_time(part):
    def read(size):
        return lambda: c_arrays((part * (size // len(part))).encode())

    check_linear(read(1_500), read(12_000))


def test_damaged_sources():
    chosen = random.Random(1)
    sources = [text.encode() for text in SPELLINGS.values()]
    for _ in range(sized(600, 20_000)):
        source = bytearray(chosen.choice(sources))
        for _ in range(chosen.randint(1, 4)):
            at = chosen.randrange(len(source))
            match chosen.randrange(3):
                case 0:
                    source[at] = chosen.choice(b"{}[]()=,;'\"\\/*#0x\n")
                case 1:
                    del source[at : at + chosen.randint(1, 40)]
                case _:
                    source[at:at] = chosen.choice(sources)[: chosen.randint(1, 60)]
        for array in c_arrays(bytes(source)):
            assert array.problem is None or array.way_out

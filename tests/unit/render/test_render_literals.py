# SPDX-License-Identifier: Apache-2.0
"""Literals of C, CMake, Kconfig and YAML, which a C compiler reads back, and lines of emitted C."""

import math
import random
import re
import struct
import subprocess

import numpy as np
import pytest
import yaml
from c_support import run
from opwest.model.types.dtypes import DTYPES
from opwest.render.literals import (
    c_comment,
    c_float,
    c_integer,
    c_number,
    c_string,
    cmake_string,
    kconfig_string,
    yaml_string,
)
from requirements_support import need, need_compiler

FLT_MAX = 3.4028234663852886e38
TEXTS = [
    "",
    "plain words 0-9",
    "quotes \" and ' and \\ and \\n and \\x41",
    "trigraphs ??= ??/ ??' ??( ??) ??! ??< ??> ??-",
    "%d %s %n %% {} ${X} $(X) @X@ #if",
    "a\tb\nc\rd\x07\x08\x0b\x0c\x1b\x7f end",
    "digits follow an escape: \x011 \x7f9 ü7 é0",
    "ü ö ß é ☃ 漢字 \U0001f600 \u202e \ufeff",
    "".join(map(chr, range(1, 256))),
    "comment */ /* // end",
    "newline at the end\\\n",
    "/*/",
]


def compiled_strings(work, texts):
    """Return the bytes of the literals in an object of the C compiler."""
    need_compiler("gcc")
    rows = "".join(f"\t{{{c_string(text)}, sizeof({c_string(text)})}},\n" for text in texts)
    (work / "strings.c").write_bytes(
        (
            "#include <stdio.h>\nstatic const struct { const char *text; size_t size; } rows[] = {\n" + rows + "};\n"
            "int main(void)\n{\n\tfor (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {\n"
            "\t\tfor (size_t j = 0; j + 1 < rows[i].size; j++) {\n"
            '\t\t\tprintf("%02x", (unsigned char)rows[i].text[j]);\n'
            '\t\t}\n\t\tprintf("\\n");\n\t}\n\treturn 0;\n}\n'
        ).encode()
    )
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-Wpedantic", "-Wtrigraphs"]
    run(["gcc", *flags, "strings.c", "-o", "strings"], work)
    return [bytes.fromhex(line) for line in run([work / "strings"], work).split("\n")[:-1]]


def test_strings_read_back(tmp_path):
    generator = random.Random(5)
    alphabet = [chr(c) for c in range(1, 128)] + list('??\\"0123456789abcdefü☃\U0001f600')
    texts = TEXTS + ["".join(generator.choices(alphabet, k=generator.randint(0, 40))) for _ in range(300)]
    assert compiled_strings(tmp_path, texts) == [text.encode() for text in texts]


BACKSLASHES = ["*\\", "a *\\ b", "/\\*", "\\*"]
CONTROLS = ["a\x00b", "a\x07b", "bidi \u202e text", "\u2066x"]


@pytest.mark.parametrize("text", [*TEXTS, *BACKSLASHES, *CONTROLS, "what ??/"])
def test_comments_stay_comments_of_one_line(text):
    line = f" {c_comment(text)} "
    assert not re.search(r"\*/|/\*|\?\?|[\\@]", line) and line.isprintable()


def limits(name):
    dtype = DTYPES[name]
    if dtype.minimum is None:
        return [0, 1, (1 << 8 * dtype.size) - 1]
    return sorted(
        {dtype.minimum, dtype.minimum + 1, -1 if dtype.minimum < 0 else 0, 0, 1, dtype.maximum - 1, dtype.maximum}
    )


def test_numbers_read_back(tmp_path):
    """Every limit of every type, and floating-point numbers at random, through the C compiler, bit by bit."""
    need_compiler("gcc")
    generator = random.Random(9)
    rows = []
    forms = {"int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q"}
    forms |= {"uint64": "Q", "float16": "H", "float32": "f", "float64": "d", "bool": "B", "bfloat16": "H"}
    forms |= {"float8_e4m3": "B", "float8_e5m2": "B"}
    for name, dtype in DTYPES.items():
        values = floats(dtype, generator) if dtype.is_float else limits(name)
        rows += [(dtype, value, struct.pack("<" + forms[name], value)) for value in values]
    lines = ["#include <stdint.h>", "#include <stdio.h>", "int main(void)", "{"]
    for number, (dtype, value, _) in enumerate(rows):
        lines.append(f"\tstatic const {dtype.c_type} v{number} = {c_number(value, dtype)};")
        lines.append(f"\tfor (size_t i = 0; i < sizeof(v{number}); i++) {{")
        lines.append(f'\t\tprintf("%02x", ((const unsigned char *)&v{number})[i]);\n\t}}\n\tprintf("\\n");')
    (tmp_path / "numbers.c").write_text("\n".join([*lines, "\treturn 0;", "}", ""]))
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-Wpedantic", "-Wconversion", "-Wsign-conversion"]
    run(["gcc", *flags, "numbers.c", "-o", "numbers"], tmp_path)
    printed = run([tmp_path / "numbers"], tmp_path).split()
    for (dtype, value, expected), line in zip(rows, printed, strict=True):
        assert bytes.fromhex(line) == expected, (dtype.name, value, c_number(value, dtype))


def floats(dtype, generator):
    """Return limits, powers and random bit patterns; the largest float32 has a separate test."""
    values = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.1,
        1e22,
        1e23,
        16777217.0,
        123456789.0,
        1e-3,
        5e-324 if dtype.size == 8 else 2**-149,
    ]
    width, form = (32, "<f") if dtype.size == 4 else (64, "<d")
    while len(values) < 400:
        (value,) = struct.unpack(form, generator.getrandbits(width).to_bytes(width // 8, "little"))
        if math.isfinite(value) and (dtype.size == 8 or abs(value) < 3e38):
            values.append(value)
    return values


def test_float32_is_never_longer_than_in_numpy():
    generator = random.Random(2)
    for value in floats(DTYPES["float32"], generator):
        shown = c_float(value, DTYPES["float32"]).removesuffix("f")
        assert np.float32(shown) == np.float32(value)
        digits = len(shown.lower().split("e")[0].replace("-", "").replace(".", "").strip("0"))
        shortest = len(
            np.format_float_scientific(np.float32(value), trim="-")
            .split("e")[0]
            .replace("-", "")
            .replace(".", "")
            .strip("0")
        )
        assert digits == shortest, (value, shown)


@pytest.mark.parametrize("value", [FLT_MAX, -FLT_MAX, 3.4028e38])
def test_float32_at_its_limit(value):
    assert float(np.float32(c_float(value, DTYPES["float32"]).removesuffix("f"))) == float(np.float32(value))


@pytest.mark.parametrize(
    ("value", "dtype", "literal"),
    [
        (-(2**63), "int64", "INT64_MIN"),
        (-(2**63) + 1, "int64", "INT64_C(-9223372036854775807)"),
        (2**63 - 1, "int64", "INT64_C(9223372036854775807)"),
        (2**64 - 1, "uint64", "UINT64_C(18446744073709551615)"),
        (-(2**31), "int32", "INT32_MIN"),
        (-(2**31), "int64", "INT64_C(-2147483648)"),
        (2**32 - 1, "uint32", "4294967295U"),
        (255, "uint8", "255U"),
        (-128, "int8", "-128"),
        (65535, "float16", "65535"),
        (1, "bool", "1"),
    ],
)
def test_integer_literals(value, dtype, literal):
    assert c_integer(value, DTYPES[dtype]) == literal


def cmake_reads(text):
    """Return the value of a quoted argument by CMake's rules: escapes, no variable references."""
    literal = cmake_string(text)
    assert literal[0] == literal[-1] == '"'
    out, at, body = [], 0, literal[1:-1]
    while at < len(body):
        if body[at] == "\\":
            assert body[at + 1] in '\\"$;', literal
            out.append(body[at + 1])
            at += 2
            continue
        assert body[at] not in '"$', literal
        out.append(body[at])
        at += 1
    return "".join(out)


@pytest.mark.parametrize("text", TEXTS)
def test_cmake_strings_read_back(text):
    assert cmake_reads(text) == text.replace("\n", " ")


@pytest.mark.parametrize("text", TEXTS)
def test_kconfig_strings_are_one_line_without_macros(text):
    literal = kconfig_string(text)
    assert "\n" not in literal and "$" not in literal
    inner = literal[1:-1].replace("\\\\", "").replace('\\"', "")
    assert '"' not in inner and "\\" not in inner


@pytest.mark.parametrize(
    "text", [*(text for text in TEXTS if "\U0001f600" not in text), "\U0001f600", "a \U00010000 b"]
)
def test_yaml_strings_read_back(text):
    assert yaml.safe_load(f"- {yaml_string(text)}") == [text]


def test_cmake_program_reads_strings_back(tmp_path):
    """With CMake, if it is installed."""
    need("cmake")
    texts = [text for text in TEXTS[:6] if "\r" not in text and "\n" not in text and text]
    script = tmp_path / "script.cmake"
    script.write_text("".join(f"message(NOTICE {cmake_string(text)})\n" for text in texts))
    done = subprocess.run(["cmake", "-P", str(script)], capture_output=True, text=True, check=True)
    assert done.stderr.split("\n")[:-1] == texts

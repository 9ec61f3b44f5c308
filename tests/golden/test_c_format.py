# SPDX-License-Identifier: Apache-2.0
"""The formatter of C: its layout is that of clang-format 19 with Zephyr's options, for names of any length."""

import random
import re
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opwest.base.c_format import format_c
from opwest.base.c_format.layout import format_text
from opwest.base.c_format.tokens import ATTRIBUTES, KEYWORDS, TYPES
from requirements_support import need

ROOT = Path(__file__).resolve().parents[2]
STYLES = (ROOT / ".clang-format", Path.home() / "zephyrproject-4.1" / "zephyr" / ".clang-format")
"""The file of this repository, and that of Zephyr where it is installed."""
WIDTH = 100
NAME = "a_name_of_a_model_that_is_as_long_as_names_get"
_FIXED = KEYWORDS | TYPES | ATTRIBUTES | {"define", "include", "ifdef", "ifndef", "endif", "defined", "undef", "elif"}
_KEPT = re.compile(r'(/\*.*?\*/|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|#include[^\n]*|\b\d\w*)', re.DOTALL)


def renamed(text, generator):
    """Return C text whose names have other lengths, from 1 to 80 characters."""
    names = {}

    def other(match):
        word = match[0]
        if word in _FIXED or word.startswith("__"):
            return word
        if word not in names:
            length = generator.choice((len(word), len(word), generator.randint(1, 30), generator.randint(1, 80)))
            name = (word[0] + "".join(generator.choices("abcdefgh", k=length)))[:length]
            names[word] = name.upper() if word.isupper() else name if name.upper() != name else f"q{name}"
        return names[word]

    parts = _KEPT.split(text)
    return "".join(part if at % 2 else re.sub(r"[A-Za-z_]\w*", other, part) for at, part in enumerate(parts))


def laid_out(style, texts, work):
    """Return the texts in the layout of clang-format, with one process for all."""
    paths = []
    for number, text in enumerate(texts):
        paths.append(work / f"{number}.c")
        paths[-1].write_text(text)
    import clang_format

    program = Path(clang_format.__file__).parent / "data" / "bin" / "clang-format"
    subprocess.run([program, f"--style=file:{style}", "-i", *map(str, paths)], check=True)
    return [path.read_text() for path in paths]


def test_emitted_files_stay_as_they_are(sources):
    for name, text in sources.items():
        assert format_c(text) == text, name
        if name.startswith("minimal/"):
            assert format_text(text) == text, name  # by all stages, without lines that are copied


@pytest.mark.parametrize("style", STYLES, ids=["own", "zephyr"])
def test_layout_is_that_of_clang_format(sources, style, tmp_path):
    need("clang_format")
    if not style.is_file():
        style = STYLES[0]
    for name, text, expected in zip(
        sources, sources.values(), laid_out(style, sources.values(), tmp_path), strict=True
    ):
        assert text == expected, name


def test_layout_of_long_names(sources, tmp_path):
    """Other names need other breaks."""
    need("clang_format")
    generator = random.Random(39)
    names = generator.sample(sorted(sources), 40)
    texts = [format_c(renamed(sources[name], generator)) for name in names]
    expected = laid_out(STYLES[0], texts, tmp_path)
    assert [name for name, text, other in zip(names, texts, expected, strict=True) if text != other] == []


def test_runtime_is_laid_out(tmp_path):
    need("clang_format")
    paths = [path for path in sorted((ROOT / "zephyr_module").rglob("*.[ch]")) if "ext" not in path.parts]
    texts = [path.read_text() for path in paths]
    assert len(paths) > 100
    changed = [
        str(p) for p, text, new in zip(paths, texts, laid_out(STYLES[0], texts, tmp_path), strict=True) if text != new
    ]
    assert changed == []


def widths(text):
    return max(len(line.expandtabs(8)) for line in text.split("\n"))


def tokens(text):
    """Return the tokens of C code: adjacent string literals joined, splices and white space removed."""
    text = re.sub(r'"\s*"', "", text.replace("\\\n", " "))
    return re.findall(r'"(?:\\.|[^"\\])*"|\w+|\S', text)


@pytest.mark.parametrize(
    "line",
    [
        f"int {NAME}_open(struct {NAME}_workspace *workspace, const struct {NAME}_devices *devices);",
        f"\tstatus = {NAME}__operator(inputs->data, (int8_t *)(void *)(pool_sram + {NAME}_OFFSET), devices->npu);",
        f'OPWEST_STATIC_ASSERT(sizeof(struct {NAME}_inputs) == 3 * sizeof(void *), "inputs have no padding");',
        f"\tconst int32_t *const expected = &set->output_{NAME}[(size_t)index * {NAME.upper()}_ELEMENTS];",
        f'\tputs("{"words of a message " * 12}" PRIu32 " end");',
        "static const uint16_t numbers[] = {" + ", ".join(str(n) for n in range(200)) + "};",
        f"#if defined({NAME}_A) || defined({NAME}_B) || defined({NAME}_C)",
    ],
)
def test_long_lines_of_code(line):
    formatted = format_c(line + "\n")
    assert widths(formatted) <= WIDTH
    assert tokens(formatted) == tokens(line)
    assert format_c(formatted) == formatted


def test_statements_of_one_line():
    text = "void f(void) { int x=1; if(x) g(x); else { h( x ) ; } for(int i=0;i<n;i++) { a[i]=-b[i]*c; } }\n"
    assert format_c(text) == (
        "void f(void)\n{\n\tint x = 1;\n\tif (x) {\n\t\tg(x);\n\t} else {\n\t\th(x);\n\t}\n"
        "\tfor (int i = 0; i < n; i++) {\n\t\ta[i] = -b[i] * c;\n\t}\n}\n"
    )


def test_macros():
    text = "#define A 1\n#define LONGER(x) (x)\n\n"
    text += "#define RUN(x) \\\n\tdo { \\\n\t\tf(x); \\\n\t\tg(x); \\\n\t} while (0)\n"
    lines = format_c(text).split("\n")
    assert lines[:2] == ["#define A         1", "#define LONGER(x) (x)"]
    assert [line[-1] for line in lines[3:7]] == ["\\"] * 4
    assert {len(line.expandtabs(8)) for line in lines[3:7]} == {WIDTH}
    assert lines[7] == "\t} while (0)"


def test_long_string_keeps_its_spaces():
    text = "word " * 40
    formatted = format_c(f'\tprintf("{text}");\n')
    assert "".join(re.findall(r'"([^"]*)"', formatted)) == text


def test_comments_are_wrapped_with_the_following_text():
    words = "word " * 30
    formatted = format_c(f"/*\n * {words.strip()}\n * and the end of it.\n * @param x {words.strip()}\n */\nint x;\n")
    lines = formatted.split("\n")
    assert widths(formatted) <= WIDTH
    assert lines[0] == "/*"
    assert lines[-3:] == [" */", "int x;", ""]
    assert any(line.startswith(" * word") and line.endswith("and the end of it.") for line in lines)
    assert " * @param x word" in formatted


def test_comment_of_one_line_becomes_a_block():
    lines = format_c(f"struct x {{\n\t/** {'word ' * 30}*/\n\tint y;\n}};\n").split("\n")
    assert lines[1] == "\t/**"
    assert lines[-4:] == ["\t */", "\tint y;", "};", ""]
    assert all(len(line.expandtabs(8)) <= WIDTH for line in lines)


@given(
    st.lists(
        st.sampled_from(["a", "b(", ")", ", ", " && ", " = ", '"s t"', "x * y", "{", "}", ";", "\n", "#if x\n", NAME]),
        max_size=40,
    )
)
def test_any_text_is_formatted(parts):
    """Text that is no C keeps its words."""
    text = " ".join(parts) + "\n"
    words = re.findall(r"\w+", re.sub(r'"[^"]*"', "", text))
    assert sorted(re.findall(r"\w+", re.sub(r'"[^"]*"', "", format_c(text)))) == sorted(words)


def test_long_line_takes_linear_time():
    long, half = ("int a[] = {" + "12345, " * count + "1};" for count in (16_000, 8_000))

    def least(line):
        """Return the least time of some runs: others can contain a collection of all objects of the process."""
        times = []
        for _ in range(4):
            started = time.process_time()
            assert widths(format_c(line)) <= WIDTH
            times.append(time.process_time() - started)
        return min(times)

    assert least(long) < 4 * least(half)

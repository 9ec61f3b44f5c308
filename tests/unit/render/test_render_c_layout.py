# SPDX-License-Identifier: Apache-2.0
"""Lines of emitted C: at most 100 columns, the same tokens, the same strings."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opwest.render.templates.c_layout import WIDTH, fit

NAME = "a_name_of_a_model_that_is_as_long_as_names_get"


def widths(text: str) -> int:
    return max(len(line.expandtabs(8)) for line in text.split("\n"))


def tokens(text: str) -> list[str]:
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
        "\tif (" + " && ".join(f"{NAME}_{i} != NULL" for i in range(4)) + ") {",
        f'\tputs("{"words of a message " * 12}" PRIu32 " end");',
        "static const uint16_t numbers[] = {" + ", ".join(str(n) for n in range(200)) + "};",
        f"#if defined({NAME}_A) || defined({NAME}_B) || defined({NAME}_C)",
        f"\tstatic struct {NAME}_workspace workspace = {{{NAME}_a, {NAME}_b, {NAME}_c}}; \\",
    ],
)
def test_long_lines_of_code(line):
    fitted = fit(line)
    assert widths(fitted) <= WIDTH
    assert tokens(fitted) == tokens(line)
    assert fit(fitted) == fitted


def test_lines_of_a_macro_stay_one_line_for_the_compiler():
    fitted = fit(f"#define {NAME} {{{NAME}_a, {NAME}_b, {NAME}_c}}\nint next;")
    *macro, following = fitted.split("\n")
    assert len(macro) > 1
    assert all(line.endswith(" \\") for line in macro[:-1])
    assert not macro[-1].endswith("\\")
    assert following == "int next;"


def test_long_string_keeps_its_spaces():
    text = "word " * 40
    fitted = fit(f'\tprintf("{text}");')
    assert "".join(re.findall(r'"([^"]*)"', fitted)) == text


def test_lines_that_fit_stay_as_they_are():
    text = "int a;   /* odd */\n\tif (x)   {\n\n * not a comment\n#define A  1 \\\n\t2\n"
    assert fit(text) == text


def test_comments_are_wrapped_with_the_following_text():
    words = "word " * 30
    fitted = fit(f"/*\n * {words.strip()}\n * and the end of it.\n * @param x {words.strip()}\n */\nint x;")
    lines = fitted.split("\n")
    assert widths(fitted) <= WIDTH
    assert lines[0] == "/*"
    assert lines[-2:] == [" */", "int x;"]
    assert any(line.startswith(" * word") and line.endswith("and the end of it.") for line in lines)
    assert " * @param x word" in fitted


def test_comment_of_one_line_becomes_a_block():
    fitted = fit(f"\t/** {'word ' * 30}*/")
    lines = fitted.split("\n")
    assert lines[0] == "\t/**"
    assert lines[-1] == "\t */"
    assert widths(fitted) <= WIDTH


def test_overlong_name_ends_the_search():
    name = "n" * 120
    assert tokens(fit(f"int {name}(int {name}_a, int {name}_b);")) == tokens(f"int {name}(int {name}_a, int {name}_b);")


@given(st.lists(st.sampled_from(["a", "b(", ")", ", ", " && ", " = ", '"s t"', "/* c */", "x * y", NAME]), max_size=40))
def test_any_line_keeps_its_tokens(parts):
    line = "".join(parts).strip()
    if '""' in line or line.startswith("/*"):
        return
    assert tokens(fit(line)) == tokens(line)


def test_long_line_takes_linear_time():
    long, half = ("int a[] = {" + "12345, " * count + "};" for count in (16_000, 8_000))

    def least(line):
        """Return the least time of some runs: others can contain a collection of all objects of the process."""
        times = []
        for _ in range(4):
            started = time.process_time()
            assert widths(fit(line)) <= WIDTH
            times.append(time.process_time() - started)
        return min(times)

    assert least(long) < 4 * least(half)

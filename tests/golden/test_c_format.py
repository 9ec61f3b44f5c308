# SPDX-License-Identifier: Apache-2.0
"""The formatter of C: its layout is that of clang-format 19 with Zephyr's options, for names of any length."""

import json
import random
import re
import time
from pathlib import Path

import pytest
from c_layout import ROOT, STYLE, differing, laid_out
from golden_trees import LOCK, TREES
from hypothesis import given
from hypothesis import strategies as st
from opwest.base.c_format import format_c
from opwest.base.c_format.layout import format_text
from opwest.base.c_format.tokens import ATTRIBUTES, KEYWORDS, TYPES
from opwest.drafting.new_driver import DriverNames, driver_files
from opwest.render.bundle import bundle_files, render_bundle_header
from opwest.runs.arrays import Runs
from opwest.runs.harness import main_source, own_renderer
from opwest.runs.project_data import tensors_of
from opwest.runs.services import write_services

STYLES = (STYLE, Path.home() / "zephyrproject-4.1" / "zephyr" / ".clang-format")
"""The file of this repository, and that of Zephyr where it is installed."""
WIDTH = 100
NAME = "a_name_of_a_model_that_is_as_long_as_names_get"
_FIXED = (
    KEYWORDS
    | TYPES
    | ATTRIBUTES
    | {"define", "include", "ifdef", "ifndef", "endif", "defined", "undef", "elif", "FILE"}
)
_KEPT = re.compile(r'(/\*.*?\*/|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|#include[^\n]*|\b\d\w*)', re.DOTALL)


@pytest.fixture(scope="session")
def sources(emission, tmp_path_factory):
    """Return the generated C files of the golden projects and of a new driver, by name."""
    files = {}
    for name in TREES:
        made = emission(name)
        files |= {f"{name}/{path}": text for path, text in made.generated_c().items()}
        others = rendered(made, tmp_path_factory.mktemp("service"))
        files |= {f"rendered/{name}/{path}": text for path, text in others.items()}
    driver = driver_files(DriverNames("my_npu", "acme,my-npu"))
    files |= {f"driver/{path}": text.decode() for path, text in driver.items() if path.endswith((".c", ".h"))}
    assert len(files) > 200
    return files


def rendered(emission, work):
    """Return the sources of bundles, of the service and of the main program of this machine, by name."""
    render = own_renderer()
    record = json.loads(emission.files[LOCK])["record"]
    files = {}
    for model, plan in emission.planned:
        label = f"{model.name}/{model.variant.name if model.variant else 'base'}"
        files[f"{label}_bundle.h"] = render_bundle_header(render, model)
        files |= {f"{label}/{path}": content for path, content in bundle_files(render, model, plan, 2).items()}
    write_services(work, work, record)
    files |= {f"service/{path.relative_to(work)}": path.read_bytes() for path in work.rglob("*.c")}
    for model in record["models"]:
        write = {"place": "workspace.sram + 16", "size": 128}
        stops = [{"point": point, "writes": [write]} for point in range(len(model["steps"]))]
        for inputs in (Runs({}, 3), Runs({}, 2, frozenset(row["name"] for row in tensors_of(model, "input")))):
            source = main_source(model, inputs, stops, measures=True, trace=bool(inputs.streams))
            files[f"host/{model['name']}/{inputs.count}/main.c"] = source
    return {name: text.decode() for name, text in files.items() if name.endswith((".c", ".h"))}


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
            is_usable = name.upper() != name and name not in _FIXED
            names[word] = name.upper() if word.isupper() else name if is_usable else f"q{name}"
        return names[word]

    parts = _KEPT.split(text)
    return "".join(part if at % 2 else re.sub(r"[A-Za-z_]\w*", other, part) for at, part in enumerate(parts))


def test_emitted_files_stay_as_they_are(sources):
    for name, text in sources.items():
        assert format_c(text) == text, name
        if name.startswith("minimal/"):
            assert format_text(text) == text, name  # by all stages, without lines that are copied


@pytest.mark.parametrize("style", STYLES, ids=["own", "zephyr"])
def test_layout_is_that_of_clang_format(sources, style, tmp_path):
    assert differing(sources, tmp_path, style if style.is_file() else STYLE) == []


def test_layout_of_long_names(sources, tmp_path):
    """Other names need other breaks."""
    generator = random.Random(39)
    names = generator.sample(sorted(sources), 40)
    texts = [format_c(renamed(sources[name], generator)) for name in names]
    expected = laid_out(texts, tmp_path)
    assert [name for name, text, other in zip(names, texts, expected, strict=True) if text != other] == []


def test_runtime_is_laid_out(tmp_path):
    paths = [path for path in (ROOT / "zephyr_module").rglob("*.[ch]") if "ext" not in path.parts]
    assert len(paths) > 100
    assert differing({str(path): path.read_text() for path in paths}, tmp_path) == []


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


def test_empty_lines():
    assert format_c("\n\nint x;\n\n\n\nint y;\n\n\n") == "int x;\n\nint y;\n"


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


def test_comments_of_macros_that_do_not_fit():
    """Comments behind macros are above all macros of their lines if one does not fit."""
    long, comment = "A" * 70, "/* sram: int32 [1, 2] */"
    text = f"int x;\n\n#define {long} 64 {comment}\n#define B 5 {comment}\n"
    expected = f"int x;\n\n{comment}\n#define {long} 64\n{comment}\n#define {'B':70} 5\n"
    assert format_c(text) == format_text(text) == format_c(expected) == format_text(expected) == expected


def test_comments_between_values(tmp_path):
    """Long comments in a table have lines without stars, as by clang-format."""
    words = "words of a comment " * 8
    texts = [f"static const int a[] = {{\n\t/* {words[:end].strip()} */\n\t1,\n\t2,\n}};\n" for end in range(80, 140)]
    assert [format_c(text) for text in texts] == laid_out(texts, tmp_path)


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

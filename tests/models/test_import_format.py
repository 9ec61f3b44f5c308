# SPDX-License-Identifier: Apache-2.0
"""The C of imports in Zephyr's format, for every operator: lines, statements, declarations, assembly."""

import re

import numpy as np
import pytest
from c_layout import differing
from models.campaigns import graph_of
from models.executor import program_of
from models.test_warnings import models
from opwest.base.c_format import format_c
from opwest.compiler.emission.function import VARIANTS, Lines
from opwest.compiler.output.emit import emit_program
from opwest.compiler.output.source import c_file
from opwest.tuning import random_layers

LAYERS = ("convolution", "dense", "depthwise", "pool", "elements", "add", "convolution_sum")
DECLARATION = re.compile(r"\t+(?:const )?(?:u?int\d+_t|int|float|double) \*?\w+ = .*;")
STATEMENT = re.compile(r"\t+(?:\*?\w+(?:\[[^\]]*\]|\+\+)? [+*-]?= |\w+\(|for \(|while \(|if \()")


def check(source):
    """Check the layout of a file."""
    text = c_file(source).decode()
    assert c_file(text).decode() == text
    lines = text.splitlines()
    for number, line in enumerate(lines):
        assert len(line.expandtabs(8)) <= 100, line
        if line.startswith(" *") or line.endswith("{"):
            continue
        assert not re.search(r";\s*\w", re.sub(r"for \(.*|/\*.*|\"(?:\\.|[^\"\\])*\"", "", line)), line
        if number and DECLARATION.fullmatch(lines[number - 1]) and not DECLARATION.match(line):
            assert not STATEMENT.match(line), f"{lines[number - 1]}\n{line}"
    return text


@pytest.mark.parametrize("kernels", ["portable", "mla", "dsp", "mve"])
def test_every_operator(kernels, tmp_path):
    turn = ["portable", "mla", "dsp", "mve"].index(kernels)
    texts = []
    for number, model in enumerate(models()):
        if number % 4 == turn:
            texts.append(check(emit_program(program_of(graph_of(model.build())), "made by a test", kernels).source))
    assert len(texts) > 100
    assert differing(dict(enumerate(texts)), tmp_path) == []


@pytest.mark.parametrize("name", LAYERS)
def test_every_variant_of_a_layer(name, tmp_path):
    names = {variant.name for variants in VARIANTS.values() for variant in variants}
    found = {}
    for seed in range(2):
        made = getattr(random_layers, name)(np.random.default_rng((12, seed)), dtype="int8")
        for variant in sorted(names):
            emitted = emit_program(made, "A layer.", variant)
            if emitted.steps[0].variant not in found:
                found[emitted.steps[0].variant] = check(emitted.source)
    assert len(found) > 2, found
    assert differing(found, tmp_path) == []


def test_declarations_are_separated_from_statements():
    lines = Lines()
    lines.add("const int32_t x = data[0];", "int32_t *y = result, z = 0;")
    with lines.loop("i", 3):
        lines.add("y[i] = x;", "const struct state *s = &z;")
        with lines.block("if (x > 3)"):
            lines.add("continue;", "")
    assert str(lines).splitlines() == [
        "\tconst int32_t x = data[0];",
        "\tint32_t *y = result, z = 0;",
        "",
        "\tfor (int i = 0; i < 3; i++) {",
        "\t\ty[i] = x;",
        "\t\tconst struct state *s = &z;",
        "",
        "\t\tif (x > 3) {",
        "\t\t\tcontinue;",
        "\t\t}",
        "\t}",
    ]
    assert str(Lines()) == ""


OPERANDS = """void f(int8_t *to, int value, int count)
{
	__asm__("sxtab16 %0, %1, %2" : "=r"(to) : "r"(value), "r"(count));
	__asm__ volatile("vdup.8 q0, %[value]\\n\\t"
			 "letp lr, 1b\\n"
			 : [to] "+r"(to)
			 : [value] "r"(value), [n] "r"(count)
			 : "q0", "lr", "memory");
}
"""


def test_assembly_with_operands():
    """As clang-format 19 does."""
    joined = OPERANDS.replace('\\n"\n\t\t\t : [to]', '\\n" : [to]').replace("\n\t\t\t : ", " : ")
    assert joined.count("\n") == OPERANDS.count("\n") - 3
    assert format_c(joined) == format_c(OPERANDS) == OPERANDS


def test_lines_that_differ_in_digits_have_one_layout():
    line = "\t\t\t\t\ty[c + {}] = (int8_t)clamp(scale_twice_positive(a{}, m, s) + (-128), (-128), 127);"
    text = "\n".join(["void f(void)\n{", line.format(16, 21), line.format(33, 40), "}", ""])
    lines = format_c(text).splitlines()
    assert len(lines) == 9 and "".join("".join(lines).split()) == "".join(text.split())
    assert [one.replace("16", "33").replace("a21", "a40") for one in lines[2:5]] == lines[5:8]

# SPDX-License-Identifier: Apache-2.0
"""Accesses of operators from their C code: never less than what compiled code does, and exact for TVM's loops."""

import random
import subprocess

import pytest
from importers_support import output_of
from opwest.frontends.mlf.c_text import functions
from opwest.frontends.mlf.unpack.accesses import read_operator
from opwest.frontends.mlf.unpack.expressions import Grid, Loop, interval, loops_of
from opwest.frontends.mlf.unpack.functions import NotUnpackedError, Trees
from opwest.frontends.mlf.unpack.memory import Budget, extent_of, surely_written

TEMPLATE = "int32_t f(float* p0, float* out) {{\n{body}\n  return 0;\n}}\n"


def extents(body, other=""):
    """Return the extents of the parameters of an operator with a body; `other` has the functions that it calls."""
    text = other + TEMPLATE.format(body=body)
    known = functions(text)
    operator = read_operator(known["f"], ["tensor", "tensor"], Trees(known, dict.fromkeys(known, text), {}, {}))
    budget = Budget()
    return operator, [extent_of(base, budget) for base in operator.bases], budget


EXACT = {
    "for (int32_t i = 0; i < 8; ++i) { out[i] = p0[i]; }": (32, 32, 32),
    "for (int32_t i = 0; i < 8; ++i) { out[i] = p0[(7 - i)]; }": (32, 32, 32),
    "for (int32_t i = 0; i < 9; ++i) { out[i] = ((1 <= i) && (i < 9)) ? p0[(i - 1)] : 0.0f; }": (32, 36, 36),
    "for (int32_t i = 0; i < 9; ++i) { if (i < 5) { out[i] = p0[(i * 2)]; } }": (36, 20, 20),
    "for (int32_t i = 0; i < 24; ++i) { out[(((i / 6) * 8) + (i % 6))] = p0[(i >> 2)]; }": (24, 120, 24),
    "int32_t c = 3; for (int32_t i = 0; i < 4; ++i) { int32_t d = (i * 2) + c; out[i] = p0[d]; }": (40, 16, 16),
    "float* q = p0 + 4; for (int32_t i = 0; i < 4; ++i) { out[i] = q[i]; }": (32, 16, 16),
    "for (int32_t i = 0; i < 4; ++i) { out[i] = (p0[i] < 0.0f) ? 0.0f : expf(p0[i]); }": (16, 16, 16),
    "for (int32_t i = 0; i < 4; ++i) { if (p0[i] > 0.0f) { out[i] = 1.0f; } }": (16, 16, 0),
    "for (int32_t i = 0; i < 4; ++i) { out[(i) < (2) ? (i) : (2)] = p0[i]; }": (16, 12, 12),
    "((int8_t*)out)[3] = ((int8_t*)p0)[9];": (10, 4, 0),
    # Arithmetic that wraps: the conditions are true for i < 3.
    "for (int32_t i = 0; i < 4; ++i) { if (((uint32_t)i - 3) > 5) { out[i] = p0[i]; } }": (16, 16, 0),
    "for (int32_t i = 0; i < 4; ++i) { if ((i - 3u) > 5) { out[i] = p0[i]; } }": (16, 16, 0),
    "for (int32_t i = 0; i < 4; ++i) { if ((i - 0x80000003) > 5) { out[i] = p0[i]; } }": (16, 16, 0),
    "uint32_t n = 3; for (int32_t i = 0; i < 4; ++i) { if ((i - n) > 5) { out[i] = p0[i]; } }": (16, 16, 0),
    "cmsis_nn_dims d = {1, 1, 2, 4}; out[0] = 0; arm_g(&d, p0);": (32, 4, 4),
}
UNKNOWN = [
    "g(p0);",
    "float* q = p0; ++q; out[0] = q[0];",
    "out[0] = p0[(int32_t)p0[0]];",
    "int32_t i = 0; while (i < 4) { out[i] = p0[i]; i = i + 1; }",
    "float* a[1] = {p0}; out[0] = a[0][3];",
    "static float* saved; saved = p0;",
    "for (int32_t i = 0; i < 4; i += 2) { i = i - 1; out[i] = p0[i]; }",
    "struct pair s = {p0, 3}; g(&s);",
    "out[0] = (out[1] > 0.0f ? p0 : out)[7];",
    "return (int32_t)(intptr_t)p0;",
    "int32_t i = 0; i += 5; out[i] = p0[i];",
    # Variables that change: other updates of `for`, an address in a variable or a call, a member.
    "int32_t i = 0; for (; i < 4; ++i) { out[0] = 1; } out[i] = p0[i];",
    "int32_t j = 0; for (int32_t i = 0; i < 4; i++, j++) { out[i] = p0[j]; }",
    "int32_t j = 0; for (int32_t i = 0; i < 4; ++j) { out[0] = 1; } out[0] = p0[j];",
    "int32_t i = 0; int32_t* q = &i; *q = 9; out[0] = p0[i];",
    "int32_t i = 0; g(&i); out[0] = p0[i];",
    "float* q = p0; g(&q); out[0] = q[0];",
    "cmsis_nn_dims d = {1, 1, 1, 4}; d.w = 2; arm_g(&d, p0);",
    "cmsis_nn_dims d = {1, 1, 1, 4}; (d).w = 2; arm_g(&d, p0);",
    "cmsis_nn_dims d = {1, 1, 1, 4}; cmsis_nn_dims* q = &d; q->w = 2; arm_g(&d, p0);",
    "cmsis_nn_dims d = {1, 1, 1, 4}; g(&d, p0);",
    "cmsis_nn_dims d = {1, 1, 1, (int8_t)260}; arm_g(&d, p0);",
    # Conversions that change a value, and loops that do not end as the bound shows.
    "out[0] = p0[(uint8_t)300];",
    "int8_t k = 300; out[0] = p0[k];",
    "for (int8_t i = 0; i < 200; ++i) { out[0] = p0[i]; }",
    "for (uint32_t i = 0; i < 4; ++i) { out[0] = p0[i]; }",
    # Names that hide functions, and pointers in calls of mathematics.
    "int32_t (*expf)(float*) = g; expf(p0);",
    "out[0] = expf(p0);",
]


@pytest.mark.parametrize("body", EXACT)
def test_extents_of_loops_are_exact(body):
    operator, found, budget = extents(body)
    assert [e.size for e in found] == list(EXACT[body][:2])
    assert surely_written(operator.bases[1], budget) == EXACT[body][2]


@pytest.mark.parametrize("body", UNKNOWN)
def test_code_that_cannot_be_read_has_no_known_extent(body):
    assert extents(body)[1][0].size is None


CONTEXT = "cmsis_nn_context c = {p0, 4};"
CALLED = {
    # A function and the statement that calls it, with the end of the bytes of p0; None: unknown.
    "a conversion to the parameter": ("int32_t g(float* p, int8_t n) {\n  p[n];\n}\n", "g(p0, 300);", None),
    "a value that fits": ("int32_t g(float* p, int8_t n) {\n  p[n];\n}\n", "g(p0, 30);", 124),
    "an array": ("int32_t g(float p[4]) {\n  p[3] = 1;\n}\n", "g(p0);", None),
    "a pointer to pointers": ("int32_t g(float** p) {\n  p[1] = 0;\n}\n", "g(p0);", None),
    "a pointer to an integer": ("int32_t g(intptr_t p) {\n  *(float*)p = 1;\n}\n", "g(p0);", None),
    "a variable with its name": ("int32_t g(float* p) {\n  p[1] = 1;\n}\n", "int32_t (*g)(float*) = h; g(p0);", None),
    "a structure": ("int32_t g(cmsis_nn_context* c) {\n  ((float*)c->buf)[99] = 1;\n}\n", f"{CONTEXT} g(&c);", None),
    "a member": ("", f"{CONTEXT} float* q = c.buf; q[9] = 1;", None),
    "a structure of CMSIS-NN": ("", f"{CONTEXT} arm_g(&c);", 4),
    "a function of the source for mathematics": ("int32_t expf(float* p) {\n  p[3] = 1;\n}\n", "expf(p0);", 16),
}


@pytest.mark.parametrize("case", CALLED)
def test_calls(case):
    other, body, size = CALLED[case]
    assert extents(body, other)[1][0].size == size


COPY = "float t[4]; for (int32_t i = 0; i < 4; ++i) { t[i] = p0[i]; }"
WRITE = "for (int32_t i = 0; i < 4; ++i) { out[i] = t[i]; }"
IN_TURN, AT_ONCE = [(0, 0), (1, 1)], [None, None]
PHASES = {
    "one after the other": (COPY + WRITE, IN_TURN),
    "in blocks": (f"{{ {{ {COPY} {WRITE} }} }}", IN_TURN),
    "in a function": (f"{COPY} put(out);", IN_TURN),
    "more often than needed": (f"{COPY} float a = p0[1]; out[0] = t[0] + a; out[1] = 1;", IN_TURN),
    "in one loop": ("for (int32_t i = 0; i < 4; ++i) { out[i] = p0[i]; }", AT_ONCE),
    "in loops of a loop": (f"for (int32_t j = 0; j < 2; ++j) {{ {COPY} {WRITE} }}", AT_ONCE),
    "in loops of a condition": (f"if (t) {{ {COPY} {WRITE} }}", AT_ONCE),
    "an argument again at the end": (f"{COPY} {WRITE} out[0] = p0[0];", AT_ONCE),
    "a result that is read first": (f"float a = out[0]; {COPY} {WRITE}", AT_ONCE),
    "a pointer that is kept": (f"keep(p0); {WRITE}", AT_ONCE),
    "a pointer in a variable": (f"float* q = p0 + 1; float a = q[0]; {WRITE}", IN_TURN),
    "a pointer in a structure": (f"struct pair s = {{p0, 3}}; {WRITE}", AT_ONCE),
    "a loop that is not read": (f"while (p0[0] > t[0]) {{}} {WRITE}", AT_ONCE),
    "the first result of a library": (f"{WRITE} g(p0);", [(1, 1), (0, 0)]),
    "a jump back": (f"again:; {COPY} {WRITE} if (t[0] > 1.0f) {{ goto again; }}", AT_ONCE),
    "pointers that are declared as separate": (f"float* restrict q = out; {COPY} {WRITE}", AT_ONCE),
    "no access to the argument": (WRITE, AT_ONCE),
}


@pytest.mark.parametrize("case", PHASES)
def test_phases(case):
    """Loops and other statements of the body, one after the other, in the smallest numbering."""
    body, wanted = PHASES[case]
    operator, _, _ = extents(body, "int32_t put(float* p) {\n  p[1] = 1.0f;\n  return 0;\n}\n")
    phases = operator.phases()
    assert [phases.get(id(base)) for base in operator.bases] == wanted


@pytest.mark.parametrize("returned", ["-1", "0"])
def test_status_of_a_called_function_is_not_checked(returned):
    """It can return an error before it writes, and the operator continues."""
    other = f"int32_t g(float* p, float* q) {{\n  if (p[0] > 0.0f) {{\n    return {returned};\n  }}\n"
    other += "  q[0] = 1.0f;\n  return 0;\n}\n"
    operator, _, budget = extents("g(p0, out);", other)
    assert surely_written(operator.bases[1], budget) == 0
    operator, _, budget = extents("if (p0[0] > 0.0f) {\n    return -1;\n  }\n  out[0] = 1.0f;")
    assert surely_written(operator.bases[1], budget) == 4


@pytest.mark.parametrize(
    "body",
    ["out[-1] = p0[0];", "float* q = out - 4; q[3] = 1;", "for (int32_t i = 0; i < 4; ++i) { out[(i - 1)] = 1; }"],
)
def test_memory_before_a_tensor(body):
    with pytest.raises(NotUnpackedError, match="an operator can access memory before the start of 'out'"):
        extents(body)


def _expression(source, names, depth):
    if depth == 0 or source.random() < 0.2:
        return source.choice([*names, str(source.randint(0, 9))])
    one, other = (_expression(source, names, depth - 1) for _ in range(2))
    forms = [
        f"({one} / {source.randint(1, 7)})",
        f"({one} % {source.randint(1, 7)})",
        f"({one} & {source.choice([1, 3, 7])})",
        f"({one} >> {source.randint(0, 3)})",
        f"(({one} < {other}) ? {one} : {other})",
        f"((({one} <= {other}) && ({one} != 3)) ? ({other} + 1) : {one})",
        *[f"({one} {source.choice('+-*')} {other})"] * 2,
    ]
    return source.choice(forms)


def _kernel(source):
    """Return the body of a random operator; its indices are never negative, as C requires."""
    names = ["i", "j"]
    index, where = (f"(({_expression(source, names, 3)}) & 1023)" for _ in range(2))
    if source.random() < 0.5:
        index = f"((i * {source.randint(1, 9)}) + ({_expression(source, names, 1)}) * 0 + j)"
    guard = f"if ({_expression(source, names, 2)} < {_expression(source, names, 1)}) " if source.random() < 0.5 else ""
    return (
        f"  for (int32_t i = 0; i < {source.randint(1, 9)}; ++i) {{\n"
        f"    for (int32_t j = {source.randint(0, 2)}; j < {source.randint(3, 9)}; ++j) {{\n"
        f"      {guard}out[{where}] = p0[{index}];\n    }}\n  }}"
    )


REPORT = """\
#include <stdint.h>
#include <stdio.h>
static int32_t most[2];
static float p0[1 << 20], out[1 << 20];
static int32_t note(int which, int32_t i)
{
	most[which] = i + 1 > most[which] ? i + 1 : most[which];
	return i;
}
"""


@pytest.mark.needs("cc")
def test_random_operators_access_no_more_than_their_extents(tmp_path):
    """300 compiled operators that report each index."""
    source = random.Random(5)
    bodies = [_kernel(source) for _ in range(300)]
    code, calls = REPORT, ""
    for number, body in enumerate(bodies):
        for text, counted in (("out[", "out[note(1, "), ("p0[", "p0[note(0, "), ("] =", ")] ="), ("];", ")];")):
            body = body.replace(text, counted)
        code += f"static void f{number}(void)\n{{\n{body}\n}}\n"
        calls += f'\tmost[0] = most[1] = 0;\n\tf{number}();\n\tprintf("%d %d\\n", (int)most[0], (int)most[1]);\n'
    (tmp_path / "all.c").write_text(f"{code}int main(void)\n{{\n{calls}\treturn 0;\n}}\n")
    subprocess.run(["cc", "-O1", "-w", tmp_path / "all.c", "-o", tmp_path / "all"], check=True)
    rows = output_of(tmp_path / "all").splitlines()
    exact = 0
    for body, row in zip(bodies, rows, strict=True):
        wanted = [4 * int(n) for n in row.split()]
        operator, found, budget = extents(body)
        for extent, most in zip(found, wanted, strict=True):
            assert extent.size is None or extent.size >= most, body
            exact += extent.size == most
        assert surely_written(operator.bases[1], budget) <= wanted[1], body
    assert exact > 300  # of 600


def test_intervals_contain_all_values():
    source = random.Random(11)
    loops = [Loop("i", 0, 7, True), Loop("j", 2, 5, True)]

    def made(depth):
        if depth == 0:
            return source.choice([*loops, source.randint(-3, 9)])
        name = source.choice(["+", "-", "*", "/", "%", ">>", "&", "min", "max", "?:", "neg", "<"])
        condition = [("<", made(depth - 1), made(depth - 1))] if name == "?:" else []
        other = source.randint(1, 4) if name in ("/", "%", ">>", "&") else made(depth - 1)
        return (name, *condition, made(depth - 1), *([] if name == "neg" else [other]))

    for _ in range(3000):
        one = made(source.randint(1, 4))
        bounds = interval(one)
        if bounds is not None:
            values = Grid(loops_of([one])).values(one)
            assert bounds[0] <= values.min() <= values.max() <= bounds[1], one

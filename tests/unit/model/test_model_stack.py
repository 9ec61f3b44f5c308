# SPDX-License-Identifier: Apache-2.0
"""The most stack that run can need: sums along calls, unknown parts, and the sizes in configurations."""

import re

import projects
import pytest
from c_support import compile_all, golden_app, includes
from campaign import sized
from objects_factory import compile_object
from opwest.api.summary import summary_of
from opwest.base.diagnostics import Diagnostics, OpwestError
from opwest.cli.check import summary, summary_json
from opwest.model.checks.stack_need import _FRAME_PER_ARGUMENT, _FRAME_WORDS, stack_text
from opwest.model.readers.fingerprint import model_hash
from opwest.objects.stack import read_su
from opwest.render.boards import stack_reason, stack_size
from requirements_support import need_compiler

M3 = ["-mcpu=cortex-m3", "-mthumb", "-mfloat-abi=soft", "-fno-common", "-fstack-usage", "-ffreestanding"]
OWN = _FRAME_WORDS * 4 + _FRAME_PER_ARGUMENT * 3
"""The allowance for run: two arguments and its frame."""
DEEP = """
static __attribute__((noipa)) int deepest(int *x) { volatile int b[64]; b[x[0] & 63] = 1; return b[3]; }
static __attribute__((noipa)) int deeper(int *x) { volatile int b[32]; b[x[0] & 31] = deepest(x); return b[3]; }
int op(int *x, int *y) { volatile int b[16]; b[x[0] & 15] = deeper(x); *y = b[2]; return 0; }
"""
OTHER = "int other(int *x, int *y) { volatile int b[4]; b[x[0] & 3] = 1; *y = b[2]; return 0; }"
PLAIN = "int op(int *x, int *y) { *y = *x; return 0; }\n"


def make(folder, *sources, steps=("op",), flags=M3, su=True, declared=""):
    """Return a model of operators compiled for a Cortex-M3."""
    objects = [compile_object(folder, text, "arm-none-eabi-gcc", flags, f"o{i}.o") for i, text in enumerate(sources)]
    usage = f", stack_usage: [{', '.join(o.with_suffix('.su').name for o in objects)}]" if su else ""
    argument = "{name: x, dtype: int32, shape: [4]}, {name: y, dtype: int32, shape: [4], direction: out}"
    lines = ["version: 1", "model: m"]
    lines.append(f"objects: [{{target: cortex-m3, files: [{', '.join(o.name for o in objects)}]{usage}}}]")
    lines += ["operators:", *(f"  {name}: {{{declared}args: [{argument}]}}" for name in steps)]
    lines += ["run:", "  inputs: {x: {dtype: int32, shape: [4]}}", "  outputs: {y: {dtype: int32, shape: [4]}}"]
    names = ["x", *(f"t{i}" for i in range(len(steps) - 1)), "y"]
    lines += ["  steps:", *(f"    - {{call: {s}, args: [{names[i]}, {names[i + 1]}]}}" for i, s in enumerate(steps))]
    (folder / "manifest.yaml").write_text("\n".join(lines) + "\n")
    ((model, plan),) = projects.check([folder / "manifest.yaml"], Diagnostics())
    shown = summary_of(model, plan)
    assert f"  stack     {summary_json(shown)['stack'][0]['target']}: " in summary(shown)
    return model


def test_frames_are_summed_along_calls(tmp_path):
    model = make(tmp_path, DEEP, OTHER, steps=("other", "op"))
    sizes = {name: entry.bytes for name, entry in read_su(tmp_path / "o0.su").items()}
    assert set(sizes) == {"op", "deeper", "deepest"} and min(sizes.values()) >= 64
    (need,) = model.stack
    assert (need.known, need.bytes, need.operator) == (True, OWN + sum(sizes.values()), "op")
    assert need.sources == (".su",)
    size = -(-(need.bytes + 2048) // 256) * 256
    assert stack_size([model]) == size < 4096
    assert (
        stack_reason([model]) == f"They use at most {need.bytes} bytes (cortex-m3); the rest, 2048 or more, is a margin"
    )


def test_calls_go_through_several_objects(tmp_path):
    helper = "int helper(int *x) { volatile int b[100]; b[x[0] & 63] = 1; return b[3]; }"
    model = make(tmp_path, "int helper(int *); int op(int *x, int *y) { *y = helper(x) + 1; return 0; }", helper)
    (need,) = model.stack
    assert need.known and need.bytes > OWN + 400


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        (
            "void *memcpy(void *, const void *, unsigned); int op(int *x, int *y) { memcpy(y, x, *x); return 0; }",
            "memcpy",
        ),
        ("typedef int f(int); int op(int *x, int *y) { *y = ((f *)x[1])(*x) + 1; return 0; }", "indirect calls of op"),
        (
            "static __attribute__((noinline)) int r(int n) { return n < 2 ? n : r(n - 1) * 3 + r(n / 2); }\n"
            "int op(int *x, int *y) { *y = r(*x); return 0; }",
            "the recursion depth of r",
        ),
        (
            "int b(int); __attribute__((noinline)) int a(int n) { return n ? b(n - 1) + 1 : 0; }\n"
            "__attribute__((noinline)) int b(int n) { return n ? a(n / 2) * 3 : 1; }\n"
            "int op(int *x, int *y) { *y = a(*x); return 0; }",
            "the recursion depth of [ab]",
        ),
        ("int op(int *x, int *y) { volatile int b[*x]; b[0] = 1; *y = b[*x / 2]; return 0; }", "the frame of op"),
    ],
    ids=["library", "pointer", "recursion", "mutual", "dynamic"],
)
def test_unknown_parts_of_the_stack_are_named(source, missing, tmp_path):
    model = make(tmp_path, source)
    (need,) = model.stack
    assert not need.known and len(need.missing) == 1 and re.fullmatch(missing, need.missing[0]), need
    assert stack_size([model]) == 4096
    assert "not known for all targets: this size is an estimate" in stack_reason([model])

    model = make(tmp_path, source, declared="stack: 6KiB, ")
    (need,) = model.stack
    assert (need.known, need.bytes, need.operator) == (True, OWN + 6144, "op")
    assert "stack" in need.sources
    assert re.search("at most [0-9]+ bytes \\(largest: op\\), from .*the operators' 'stack'", stack_text(need))
    assert stack_size([model]) == -(-(need.bytes + 2048) // 256) * 256


def test_declared_stack_of_known_operators_is_only_a_check(tmp_path):
    known = make(tmp_path, DEEP).stack
    declared = make(tmp_path, DEEP, declared="stack: 6KiB, ")
    assert declared.stack == known
    assert model_hash(declared) == model_hash(make(tmp_path, DEEP))
    with pytest.raises(OpwestError, match=r"'op' needs [0-9]+ bytes of stack for target 'cortex-m3', 'stack' is 100"):
        make(tmp_path, DEEP, declared="stack: 100, ")


def test_stack_default_without_figures(tmp_path):
    model = make(tmp_path, PLAIN, su=False, flags=[f for f in M3 if f != "-fstack-usage"])
    (need,) = model.stack
    assert need.missing == ("the frame of op",) and need.bytes == OWN
    assert stack_size([model]) == 4096


def test_known_part_of_the_stack_can_exceed_the_default(tmp_path):
    source = "int abs(int); int op(int *x, int *y) { volatile int b[2000]; b[*x] = (abs)(*x); *y = b[3]; return 0; }"
    model = make(tmp_path, source)
    (need,) = model.stack
    assert need.missing == ("abs",) and need.bytes > 8000
    assert stack_size([model]) > 10000


def test_sources_alone_are_unknown(tmp_path):
    (tmp_path / "op.c").write_text(f"#include <stdint.h>\n{PLAIN.replace('int ', 'int32_t ')}")
    make_text = "{name: x, dtype: int32, shape: [4]}, {name: y, dtype: int32, shape: [4], direction: out}"
    (tmp_path / "manifest.yaml").write_text(
        f"version: 1\nmodel: m\nobjects: [{{files: [op.c]}}]\noperators: {{op: {{args: [{make_text}]}}}}\n"
        "run: {inputs: {x: {dtype: int32, shape: [4]}}, outputs: {y: {dtype: int32, shape: [4]}}, "
        "steps: [{call: op, args: [x, y]}]}\n"
    )
    ((model, plan),) = projects.check([tmp_path / "manifest.yaml"], Diagnostics())
    shown = summary_of(model, plan)
    assert model.stack == () and stack_size([model]) == 4096
    assert "  stack     unknown: the operators are compiled with the firmware and measured" in summary(shown)

    text = (tmp_path / "manifest.yaml").read_text().replace("{op: {", "{op: {stack: 5000, ")
    (tmp_path / "manifest.yaml").write_text(text)
    ((model, plan),) = projects.check([tmp_path / "manifest.yaml"], Diagnostics())
    shown = summary_of(model, plan)
    most = 5000 + _FRAME_WORDS * 8 + _FRAME_PER_ARGUMENT * 3
    assert f"  stack     any: at most {most} bytes (largest: op), from the operators' 'stack'" in summary(shown)
    assert stack_size([model]) == 7424


@pytest.fixture(scope="module")
def applications(tmp_path_factory):
    """Projects with few and many arguments, devices, and asynchronous operators."""
    found = []
    for golden in ("minimal", "many_kinds", "devices", "asynchronous", "vectors"):
        work = tmp_path_factory.mktemp(golden)
        app = golden_app(golden, work)
        ((model, _),) = projects.check([work / "source" / "manifest.yaml"], Diagnostics())
        found.append((app, model))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("profile", [[], ["-DCONFIG_OPWEST_PROFILE"]], ids=["plain", "profiled"])
@pytest.mark.parametrize(
    ("compiler", "flags", "pointer"),
    [
        ("gcc", [], 8),
        ("gcc", ["-m32"], 4),
        ("clang", [], 8),
        ("arm-none-eabi-gcc", ["-mcpu=cortex-m3", "-mthumb"], 4),
        ("arm-none-eabi-gcc", ["-mcpu=cortex-m0", "-mthumb"], 4),
        ("arm-none-eabi-gcc", ["-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard"], 4),
    ],
)
def test_stack_allowance_for_run_is_sufficient(compiler, flags, pointer, profile, applications, tmp_path):
    """Without optimization, where frames are largest, and with -Os and -O2: for each project one of them."""
    need_compiler(compiler, flags)
    for number, (app, model) in enumerate(applications):
        allowed = _FRAME_WORDS * pointer + _FRAME_PER_ARGUMENT * max(len(s.operator.args) + 1 for s in model.steps)
        source = app / "models" / model.name / "src" / f"{model.name}_run.c"
        other = ("-Os", "-O2")[(number + len(profile)) % 2]
        for optimize in sized(("-O0", other) if compiler == "gcc" else ("-O0",), ("-O0", "-Os", "-O2")):
            work = tmp_path / model.name / optimize
            compile_all(work, [source], compiler, [*flags, *profile, optimize, "-fstack-usage"], includes(app))
            name = f"{model.name}_run{'_profiled' if profile else ''}"
            used = read_su(work / f"{source.stem}.su")[name].bytes + (pointer if compiler == "clang" else 0)
            assert used <= allowed, (model.name, optimize)

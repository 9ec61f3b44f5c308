# SPDX-License-Identifier: Apache-2.0
"""A model of operators as TVM builds them by default and a plain one: its manifest and its expected results.

    python stock_project.py DIR

writes <kind>_<on|off>.{c,o}, C and LLVM with and without assertions, with the functions add_<kind>_<on|off> and so on.
It is a separate process, because TVM has an LLVM of its own.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np

VARIANTS = ("c_on", "c_off", "llvm_on", "llvm_off")
_PLAIN = """\
#include <stdint.h>

int32_t halve(const float *x, float *y)
{
	for (int i = 0; i < 32; i++) {
		y[i] = x[i] * 0.5f;
	}
	return 0;
}
"""
_OPERATORS = """\
  add_{v}:
    symbol: __tvm_ffi_add_{v}
    convention: ffi
    args: [{{name: a, {small}}}, {{name: b, {small}}}, {{name: sum, {small}, direction: out}}]
  squares_{v}:
    symbol: __tvm_ffi_squares_{v}
    convention: ffi
    workspace: {workspace}
    args: [{{name: x, {large}}}, {{name: squares, dtype: float32, shape: [32], direction: out}}]
  scale_{v}:
    symbol: __tvm_ffi_scale_{v}
    convention: ffi
    args: [{{name: a, {small}}}, {{name: mask, dtype: bool, shape: [8]}},
           {{name: factor, dtype: float32, scalar: true}}, {{name: scaled, {small}, direction: out}}]
"""
_MANIFEST = """\
version: 1
model: stock
boards: [native_sim/native/64]
objects: [{objects}]
operators:
{operators}  halve:
    args: [{{name: x, dtype: float32, shape: [32]}}, {{name: y, dtype: float32, shape: [32], direction: out}}]
run:
  inputs: {{a: {{{small}}}, mask: {{dtype: bool, shape: [8]}}, x: {{{large}}}}}
  outputs: {{{outputs}}}
  steps:
{steps}"""
_STEPS = """\
    - {{call: scale_{v}, args: [a, mask, 2.5, scaled_{v}]}}
    - {{call: add_{v}, args: [a, scaled_{v}, sum_{v}]}}
    - {{call: squares_{v}, args: [x, squares_{v}]}}
    - {{call: halve, args: [squares_{v}, half_{v}]}}
"""


def write_project(folder, *, variants=VARIANTS, ir=False, workspace="4KiB"):
    """Build the operators in a separate process and write a manifest that uses every variant."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "c_on.c").exists():
        subprocess.run([sys.executable, __file__, folder], check=True, timeout=300, capture_output=True)
    (folder / "plain.c").write_text(_PLAIN)
    compiled = [f"{v}.{'ll' if ir else 'o'}" for v in variants if v.startswith("llvm")]
    sources = ["plain.c", *(f"{v}.c" for v in variants if v.startswith("c"))]
    types = {"small": "dtype: float32, shape: [4, 8]", "large": "dtype: float32, shape: [32, 32]"}
    outputs = [f"sum_{v}: {{{types['small']}}}" for v in variants]
    outputs += [f"half_{v}: {{dtype: float32, shape: [32]}}" for v in variants]
    text = _MANIFEST.format(
        objects=f"{{target: x86-64, files: [{', '.join(compiled)}]}}, {{files: [{', '.join(sources)}]}}",
        operators="".join(_OPERATORS.format(v=v, workspace=workspace, **types) for v in variants),
        outputs=", ".join(outputs),
        steps="".join(_STEPS.format(v=v) for v in variants),
        **types,
    )
    (folder / "manifest.yaml").write_text(text)
    return folder / "manifest.yaml"


def expected(a, mask, x):
    """Return the results of every variant: the sums and the halves."""
    sums = a + np.where(mask.astype(bool), a * np.float32(2.5), a)
    wide = x.astype(np.float64)
    return sums, (np.einsum("ik,ki->i", 2 * wide, 2 * wide) / 2).astype(np.float32)


def inputs(seed):
    """Return random inputs: small numbers, whose sums differ little between orders."""
    random = np.random.default_rng(seed)
    a = random.standard_normal((4, 8)).astype(np.float32)
    return a, random.integers(0, 2, 8).astype(np.uint8), random.standard_normal((32, 32)).astype(np.float32)


def _functions(suffix):
    """Return an operator without workspace, one with, and one with a scalar and a tensor of bool."""
    from tvm import te, tirx

    a, b = (te.placeholder((4, 8), name=name) for name in "ab")
    x = te.placeholder((32, 32), name="x")
    doubled = te.compute((32, 32), lambda i, j: x[i, j] * 2.0, name="doubled")
    k = te.reduce_axis((0, 32), name="k")
    squares = te.compute((32,), lambda i: te.sum(doubled[i, k] * doubled[k, i], axis=k), name="squares")
    factor = tirx.Var("factor", "float32")
    mask = te.placeholder((8,), dtype="bool", name="mask")
    scaled = te.compute((4, 8), lambda i, j: te.if_then_else(mask[j], a[i, j] * factor, a[i, j]), name="scaled")
    made = {
        "add": te.create_prim_func([a, b, te.compute((4, 8), lambda i, j: a[i, j] + b[i, j], name="sum")]),
        "squares": te.create_prim_func([x, squares]),
        "scale": te.create_prim_func([a, mask, factor, scaled]),
    }
    return {f"{name}_{suffix}": f.with_attr("global_symbol", f"{name}_{suffix}") for name, f in made.items()}


def _build(folder):
    import tvm

    for kind, target in (("c", {"kind": "c"}), ("llvm", {"kind": "llvm", "mtriple": "x86_64-linux-gnu"})):
        for asserts in ("on", "off"):
            module = tvm.IRModule(_functions(f"{kind}_{asserts}"))
            with tvm.transform.PassContext(config={"tirx.disable_assert": asserts == "off"}):
                built = tvm.tirx.build(module, target=tvm.target.Target(target))
            if kind == "c":
                (folder / f"c_{asserts}.c").write_text(built.inspect_source())
            else:
                built.write_to_file(str(folder / f"llvm_{asserts}.o"), "o")
                (folder / f"llvm_{asserts}.ll").write_text(built.inspect_source("ll"))


if __name__ == "__main__":
    _build(Path(sys.argv[1]))

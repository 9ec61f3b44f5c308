# SPDX-License-Identifier: Apache-2.0
"""A model of operators as TVM builds them by default and a plain one: its manifest and its expected results."""

import subprocess
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
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
    args:
      - {{name: a, dtype: float32, shape: [4, 8]}}
      - {{name: b, dtype: float32, shape: [4, 8]}}
      - {{name: sum, dtype: float32, shape: [4, 8], direction: out}}
  squares_{v}:
    symbol: __tvm_ffi_squares_{v}
    convention: ffi
    workspace: {workspace}
    args:
      - {{name: x, dtype: float32, shape: [32, 32]}}
      - {{name: squares, dtype: float32, shape: [32], direction: out}}
  scale_{v}:
    symbol: __tvm_ffi_scale_{v}
    convention: ffi
    args:
      - {{name: a, dtype: float32, shape: [4, 8]}}
      - {{name: mask, dtype: bool, shape: [8]}}
      - {{name: factor, dtype: float32, scalar: true}}
      - {{name: scaled, dtype: float32, shape: [4, 8], direction: out}}
"""


def write_project(folder, *, variants=VARIANTS, ir=False, workspace="4KiB"):
    """Build the operators in a separate process and write a manifest that uses every variant."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "c_on.c").exists():
        command = [sys.executable, HERE / "stock_operators.py", folder, "x86_64-linux-gnu"]
        subprocess.run(command, check=True, timeout=300, capture_output=True)
    (folder / "plain.c").write_text(_PLAIN)
    compiled = [f"{v}.{'ll' if ir else 'o'}" for v in variants if v.startswith("llvm")]
    sources = [f"{v}.c" for v in variants if v.startswith("c")]
    lines = ["version: 1", "model: stock", "boards: [native_sim/native/64]", "objects:"]
    lines += [f"  - {{target: x86-64, files: [{', '.join(compiled)}]}}"] if compiled else []
    lines += [f"  - {{files: [{', '.join(['plain.c', *sources])}]}}", "operators:"]
    lines += [_OPERATORS.format(v=v, workspace=workspace).rstrip() for v in variants]
    lines += [
        "  halve:",
        "    args:",
        "      - {name: x, dtype: float32, shape: [32]}",
        "      - {name: y, dtype: float32, shape: [32], direction: out}",
        "run:",
        "  inputs:",
        "    a: {dtype: float32, shape: [4, 8]}",
        "    mask: {dtype: bool, shape: [8]}",
        "    x: {dtype: float32, shape: [32, 32]}",
        "  outputs:",
        *(f"    sum_{v}: {{dtype: float32, shape: [4, 8]}}" for v in variants),
        *(f"    half_{v}: {{dtype: float32, shape: [32]}}" for v in variants),
        "  steps:",
    ]
    for v in variants:
        lines += [
            f"    - {{call: scale_{v}, args: [a, mask, 2.5, scaled_{v}]}}",
            f"    - {{call: add_{v}, args: [a, scaled_{v}, sum_{v}]}}",
            f"    - {{call: squares_{v}, args: [x, squares_{v}]}}",
            f"    - {{call: halve, args: [squares_{v}, half_{v}]}}",
        ]
    manifest = folder / "manifest.yaml"
    manifest.write_text("\n".join([*lines, ""]))
    return manifest


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

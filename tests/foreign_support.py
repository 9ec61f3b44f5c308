# SPDX-License-Identifier: Apache-2.0
"""Operators compiled by Halide and by MLIR, for tests."""

import os
import subprocess
import sys
from pathlib import Path

from requirements_support import need, program

HALIDE_TARGETS = {"x86-64": "x86-64-linux-no_runtime", "arm": "arm-32-noos-no_runtime-no_neon-soft_float_abi"}
"""The target of Halide's objects; Halide has no Cortex-M."""
_PIPELINE = """
import sys
import halide as hl

target, path, kind, schedule = sys.argv[1:]
x, y = hl.Var("x"), hl.Var("y")
image, factor = hl.ImageParam(hl.Int(16), 2, "image"), hl.Param(hl.Int(32), "factor")
scaled, result = hl.Func("scaled"), hl.Func("scale")
scaled[x, y] = hl.i16(hl.i32(image[x, y]) * factor)
result[x, y] = scaled[x, y] + image[x, 0]
scaled.compute_root()
if schedule == "parallel":
    result.parallel(y)
result.compile_to({getattr(hl.OutputFileType, kind): path}, [image, factor], "scale", hl.Target(target))
"""
MLIR = """
func.func @half(%x: memref<4x5xi16>, %by: i16, %y: memref<5x4xi16>) attributes {llvm.emit_c_interface} {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>],
                  iterator_types = ["parallel", "parallel"]}
    ins(%x: memref<4x5xi16>) outs(%y: memref<5x4xi16>) {
  ^bb0(%a: i16, %b: i16):
    %c = arith.addi %a, %by : i16
    linalg.yield %c : i16
  }
  return
}
func.func @total(%x: memref<?x?xi16>) -> i32 attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = memref.dim %x, %c0 : memref<?x?xi16>
  %columns = memref.dim %x, %c1 : memref<?x?xi16>
  %sum = scf.for %i = %c0 to %rows step %c1 iter_args(%outer = %zero) -> (i32) {
    %part = scf.for %j = %c0 to %columns step %c1 iter_args(%inner = %outer) -> (i32) {
      %value = memref.load %x[%i, %j] : memref<?x?xi16>
      %wide = arith.extsi %value : i16 to i32
      %next = arith.addi %inner, %wide : i32
      scf.yield %next : i32
    }
    scf.yield %part : i32
  }
  return %sum : i32
}
"""
_HEAP = """
func.func @copied(%x: memref<4xi16>, %y: memref<4xi16>) attributes {llvm.emit_c_interface} {
  %t = memref.alloc() : memref<4xi16>
  memref.copy %x, %t : memref<4xi16> to memref<4xi16>
  memref.copy %t, %y : memref<4xi16> to memref<4xi16>
  memref.dealloc %t : memref<4xi16>
  return
}
"""


def halide_headers() -> Path:
    need("halide")
    import halide

    return Path(str(halide.__file__)).parent / "include"


def make_pipeline(path: Path, target: str, kind: str = "object", schedule: str = "") -> Path:
    """Compile `scale`: image[y, x] * factor + image[0, x], int16; `kind` is `object` or `llvm_assembly`."""
    need("halide")
    command = [sys.executable, "-c", _PIPELINE, target, str(path), kind, schedule]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HL_")}
    subprocess.run(command, check=True, env=environment)
    return path


def make_mlir(path: Path, index_bits: int, text: str = MLIR) -> Path:
    """Compile functions of MLIR to LLVM IR: `half` (y[j, i] = x[i, j] + by), `total`, with their C interfaces."""
    need("mlir-opt", "mlir-translate")
    option = f"=index-bitwidth={index_bits}"
    passes = ["--convert-linalg-to-loops", "--convert-scf-to-cf", "--expand-strided-metadata", "--lower-affine"]
    passes += [f"--{name}{option}" for name in ("finalize-memref-to-llvm", "convert-arith-to-llvm")]
    passes += [f"--{name}{option}" for name in ("convert-func-to-llvm", "convert-cf-to-llvm")]
    lowered = subprocess.run(
        [str(program("mlir-opt")), *passes, "--reconcile-unrealized-casts"],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    )
    command = [str(program("mlir-translate")), "--mlir-to-llvmir", "-o", str(path)]
    subprocess.run(command, input=lowered.stdout, text=True, check=True)
    return path


def make_mlir_with_heap(path: Path) -> Path:
    return make_mlir(path, 64, _HEAP)

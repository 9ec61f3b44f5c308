# SPDX-License-Identifier: Apache-2.0
"""A model of bfloat16 operators in the three calling conventions, with a constant and golden vectors."""

from pathlib import Path

import numpy as np

OPERATORS = """
#include <stdint.h>
#include <string.h>
#include <dlpack/dlpack.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/ffi/c_api.h>

void* __tvm_module_ctx = NULL;
void* __tvm_ffi__library_ctx = NULL;

static float wide(uint16_t bits)
{
	const uint32_t all = (uint32_t)bits << 16;
	float value;

	memcpy(&value, &all, sizeof(value));
	return value;
}

static uint16_t narrow(float value)
{
	uint32_t all;

	memcpy(&all, &value, sizeof(all));
	return (uint16_t)((all + 0x7fffU + (all >> 16 & 1U)) >> 16);
}

static int32_t add(const DLTensor *from, const DLTensor *to, float number)
{
	const DLDataType required = {kDLBfloat, 16, 1};

	if (memcmp(&from->dtype, &required, 4) != 0 || memcmp(&to->dtype, &required, 4) != 0) {
		return -1;
	}
	for (int i = 0; i < 4; i++) {
		((uint16_t *)to->data)[i] = narrow(wide(((const uint16_t *)from->data)[i]) + number);
	}
	return 0;
}

int32_t multiply(const uint16_t *x, const uint16_t *w, uint16_t by, uint16_t *y)
{
	for (int i = 0; i < 4; i++) {
		y[i] = narrow(wide(x[i]) * wide(w[i]) * wide(by));
	}
	return 0;
}

TVM_DLL int32_t add_one(void *args, int32_t *codes, int32_t n, void *ret, int32_t *ret_code, void *resource)
{
	(void)codes, (void)n, (void)ret, (void)ret_code, (void)resource;
	return add(((TVMValue *)args)[0].v_handle, ((TVMValue *)args)[1].v_handle, 1.0f);
}

TVM_DLL int32_t add_two(void *self, void *args, int32_t n, void *result)
{
	(void)self, (void)n, (void)result;
	return add(((TVMFFIAny *)args)[0].v_ptr, ((TVMFFIAny *)args)[1].v_ptr, 2.0f);
}
"""
MANIFEST = """
version: 1
model: brain
objects:
  - {files: [operators.c]}
operators:
  multiply:
    args:
      - {name: x, dtype: bfloat16, shape: [4]}
      - {name: w, dtype: bfloat16, shape: [4]}
      - {name: by, dtype: bfloat16, scalar: true}
      - {name: y, dtype: bfloat16, shape: [4], direction: out}
  add_one:
    convention: packed
    args: [{name: x, dtype: bfloat16, shape: [4]}, {name: y, dtype: bfloat16, shape: [4], direction: out}]
  add_two:
    convention: ffi
    args: [{name: x, dtype: bfloat16, shape: [4]}, {name: y, dtype: bfloat16, shape: [4], direction: out}]
constants:
  w: {file: w.npy, dtype: bfloat16}
run:
  inputs: {x: {dtype: bfloat16, shape: [4]}}
  outputs: {y: {dtype: bfloat16, shape: [4]}}
  steps:
    - {call: multiply, args: [x, w, 0x4000, product]}
    - {call: add_one, args: [product, sum]}
    - {call: add_two, args: [sum, y]}
tests:
  vectors: [cases.npz]
  tolerance: {y: {relative: 0.01}}
"""
X = np.array([1.0, -2.5, 0.5, 1024.0], np.float32)
W = np.array([1.0, 2.0, 0.50001, -1.0], np.float32)
"""The third is rounded to 0.5."""
Y = np.array([5.0, -7.0, 3.5, -2048.0], np.float32)
"""x * w * 2 + 1 + 2, rounded to bfloat16."""


def bits_of(numbers: np.ndarray) -> np.ndarray:
    """Return the bits of numbers that are bfloat16 exactly."""
    bits = numbers.astype(np.float32).view(np.uint32)
    assert not (bits & 0xFFFF).any()
    return (bits >> 16).astype(np.uint16)


def write_project(folder: Path) -> Path:
    """Write the manifest and the files that it names; return the directory."""
    folder.mkdir()
    (folder / "manifest.yaml").write_text(MANIFEST)
    (folder / "operators.c").write_text(OPERATORS)
    np.save(folder / "w.npy", W)
    # Inputs as bits; outputs in float32 as from a reference, within the tolerance.
    np.savez(folder / "cases.npz", x=bits_of(X)[np.newaxis], y=(Y * np.float32(1.003))[np.newaxis])
    return folder

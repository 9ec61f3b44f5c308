# SPDX-License-Identifier: Apache-2.0
"""Elements of types that numpy lacks, against numpy's half precision, which covers every case."""

from dataclasses import replace

import numpy as np
import pytest
from opwest.manifest.arrays import Array
from opwest.model.dtypes import DTYPES
from opwest.model.elements import converted, elements_of, numbers_from, numbers_of, reference_of

HALF = replace(DTYPES["float16"], name="half_bits", numpy="uint16")
"""float16 as if numpy did not have it."""
EVERY = np.arange(1 << 16, dtype=np.uint16)


def test_bits_are_numbers():
    np.testing.assert_array_equal(numbers_of(EVERY, HALF), EVERY.view(np.float16).astype(np.float32))
    assert np.signbit(numbers_of(np.array([0x8000], np.uint16), HALF)).all()


def test_numbers_are_rounded_as_numpy_rounds_halves():
    halves = EVERY.view(np.float16)
    near = np.sort(halves[np.isfinite(halves)].astype(np.float64))
    middle = (near[1:] + near[:-1]) / 2  # ties
    for numbers in (near, middle, np.nextafter(middle, 1e9), np.array([65519.9, 65520.0, -1e30, 1e-30, np.inf, -0.0])):
        with np.errstate(over="ignore"):
            expected = numbers.astype(np.float16)
        got, rounded = elements_of(numbers, HALF)
        np.testing.assert_array_equal(got, expected.view(np.uint16))
        assert rounded == np.count_nonzero(expected.astype(np.float64) != numbers)


def test_nan_is_preserved():
    got, rounded = elements_of(np.array([np.nan], np.float32), HALF)
    assert np.isnan(numbers_of(got, HALF)).all() and rounded == 0


@pytest.mark.parametrize("dtype", ["u2", ">u2", "V2"])
def test_bit_patterns_are_not_converted(dtype):
    bits = np.array([[0x3C00, 0x4000]], np.uint16)
    given = bits.view(dtype) if dtype == "V2" else bits.astype(dtype)
    got, rounded = elements_of(given, HALF)
    assert got.dtype == np.uint16 and got.shape == (1, 2) and rounded == 0
    np.testing.assert_array_equal(got, bits)
    np.testing.assert_array_equal(reference_of(given, HALF), [[1.0, 2.0]])


@pytest.mark.parametrize("dtype", ["int16", "float16", "uint32", "V4", "complex64", "bool"])
def test_other_arrays_are_rejected(dtype):
    assert elements_of(np.zeros(2, dtype), HALF) is None
    assert elements_of(np.zeros(2, dtype), DTYPES["float64"]) is None


def test_numpy_types_are_not_converted():
    given = np.array(1.5, ">f4")
    got, rounded = elements_of(given, DTYPES["float32"])
    assert got.shape == () and got.dtype == np.float32 and got == 1.5 and rounded == 0
    assert numbers_of(got, DTYPES["float32"]) is got
    assert elements_of(np.zeros(2), DTYPES["float32"]) is None
    assert reference_of(given, DTYPES["float16"]) is given


def test_files_are_converted_in_little_endian():
    ones = Array(b"\0\x3c\0\x40", "uint16", (2,))
    assert converted(ones, HALF) == (replace(ones, dtype="half_bits"), 0)
    assert converted(replace(ones, dtype="void16"), HALF) == (replace(ones, dtype="half_bits"), 0)
    raw = replace(ones, dtype=None, shape=None)
    assert converted(raw, HALF) == (raw, 0)
    floats = Array(np.array([1, 2.0001], "<f4").tobytes(), "float32", (2,))
    assert converted(floats, HALF) == (replace(ones, dtype="half_bits"), 1)
    assert converted(floats, DTYPES["float64"]) is None
    assert converted(replace(floats, dtype="str64"), HALF) is None


def test_numbers_of_rows_with_a_pitch():
    content = np.arange(2 * 3 * 5 - 2, dtype=np.int16).tobytes()
    found = numbers_from(content, DTYPES["int16"], [2, 3, 3], 5)
    np.testing.assert_array_equal(found, np.arange(30, dtype=np.int16).reshape(2, 3, 5)[..., :3])

# SPDX-License-Identifier: Apache-2.0
"""The calling conventions: one object for each name of the schema; C and IR for those with arrays."""

import json
from typing import get_args

import pytest
from c_support import ROOT
from opwest.model.conventions import CONVENTIONS, FFI, PACKED, UNPACKED, ConventionName, convention_of
from opwest.model.dtypes import DTYPES
from opwest.render.c.conventions import arrays_c
from opwest.render.llvm.conventions import arrays_ir
from opwest.render.records.descriptors import halide_type


def test_names_are_those_of_the_schema():
    schema = json.loads((ROOT / "schemas" / "device-manifest.schema.json").read_text())
    assert list(get_args(ConventionName)) == schema["$defs"]["convention"]["enum"]
    assert [convention.name for convention in CONVENTIONS] == list(get_args(ConventionName))


@pytest.mark.parametrize("convention", CONVENTIONS, ids=lambda c: c.name)
def test_conventions_with_arrays_are_printed_as_c_and_ir(convention):
    assert convention_of(convention.name) is convention
    assert (arrays_c(convention.name) is None) == (convention.arrays is None)
    assert (arrays_ir(convention.name) is None) == (convention.arrays is None)
    if convention.arrays is not None:
        assert (ROOT / "zephyr_module" / "include" / convention.arrays.header).is_file()


def test_unknown_convention_is_rejected():
    for function in (convention_of, arrays_c, arrays_ir):
        with pytest.raises(AssertionError):
            function("third")


def test_types_passed_by_value():
    rejected = {(c.name, d.name) for c in CONVENTIONS for d in DTYPES.values() if not c.passes_scalar(d)}
    assert rejected == {(c.name, d.name) for c in CONVENTIONS if c is not UNPACKED for d in DTYPES.values() if d.bits}
    assert UNPACKED.passes_scalar(DTYPES["float16"])


def test_packed_bool_has_one_bit():
    for dtype in DTYPES.values():
        assert FFI.arrays.dlpack(dtype) == dtype.dlpack
        is_bool = dtype.name == "bool"
        assert (PACKED.arrays.dlpack(dtype) == dtype.dlpack) == (not is_bool)
        if is_bool:
            assert (PACKED.arrays.dlpack(dtype).code, PACKED.arrays.dlpack(dtype).bits) == ("kDLUInt", 1)


@pytest.mark.parametrize("convention", [c for c in CONVENTIONS if c.descriptors], ids=lambda c: c.name)
def test_headers_of_descriptors(convention):
    assert convention.arrays is None
    assert (ROOT / "zephyr_module" / "include" / convention.descriptors.header).is_file()


def test_element_types_of_halide():
    """halide_type_t of HalideRuntime.h: code, bits, lanes; Bool() is an unsigned integer of one bit."""
    found = {name: [value.value for _, value in halide_type(dtype).values] for name, dtype in DTYPES.items()}
    codes = {"int": 0, "uint": 1, "float": 2, "bool": 1}
    for name, dtype in DTYPES.items():
        code = 4 if name == "bfloat16" else codes[dtype.kind]
        assert found[name] == [code, 1 if name == "bool" else 8 * dtype.size, 1], name


def test_sizes_of_arrays():
    """Two tensors and three values: 48 bytes per DLTensor, 8 or 16 per value; packed has padded type codes."""
    assert PACKED.arrays.bytes(2, 3) == 2 * 48 + 4 * 8 + 8
    assert FFI.arrays.bytes(2, 3) == 2 * 48 + 4 * 16

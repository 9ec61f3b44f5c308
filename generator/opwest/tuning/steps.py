# SPDX-License-Identifier: Apache-2.0
"""The steps around candidates in a model: C operators that write the data of layers and compare results."""

from __future__ import annotations

from math import prod

import numpy as np

from opwest.importers.models.emit.function import Function, Parameter, c_type
from opwest.importers.models.ir.program import Value

_NEXT = """\
/* Around 0, with a standard deviation of about 12600: the sum of four numbers of xorshift. */
static int32_t next_value(uint32_t *state)
{
	int32_t sum = -131070;

	for (int32_t i = 0; i < 4; i++) {
		*state ^= *state << 13;
		*state ^= *state >> 17;
		*state ^= *state << 5;
		sum += (int32_t)(*state >> 16);
	}
	return sum / 3;
}
"""


def fill(value: Value, seed: int) -> Function:
    """Return an operator that writes a tensor: values around the middle of a small dtype, some at its limits.

    Equal seeds give equal content.
    """
    body = f"""\
	uint32_t state = {seed + 1}u;

	for (int32_t i = 0; i < {prod(value.shape)}; i++) {{
		const int32_t value = next_value(&state);
{_stored(value.dtype)}	}}
"""
    return Function(f"fill_{value.dtype}", (Parameter("data", value.dtype, "out"),), body, definitions=(_NEXT,))


def _stored(dtype: str) -> str:
    """Return the lines that store a value as an element."""
    kind = c_type(dtype)
    if dtype == "bool":
        return "\n\t\tdata[i] = value > 0;\n"
    if np.issubdtype(np.dtype(dtype), np.floating):
        return f"\n\t\tdata[i] = ({kind})value / ({kind})12600;\n"
    limits = np.iinfo(dtype)
    low, high = max(int(limits.min), -(1 << 30)), min(int(limits.max), 1 << 30)
    scaled = "value / 256" if limits.bits == 8 else "value"
    return f"""\
		const int32_t scaled = {scaled};

		data[i] = ({kind})(scaled < {low} ? {low} : scaled > {high} ? {high} : scaled);
"""


def compare(value: Value) -> Function:
    """Return an operator that counts the bytes in which two tensors like a value differ."""
    size = prod(value.shape) * np.dtype(value.dtype).itemsize
    body = f"""\
	const uint8_t *left = (const uint8_t *)wanted;
	const uint8_t *right = (const uint8_t *)found;
	uint32_t count = 0;

	for (int32_t i = 0; i < {size}; i++) {{
		count += left[i] != right[i];
	}}
	differences[0] = count;
"""
    parameters = (
        Parameter("wanted", value.dtype),
        Parameter("found", value.dtype),
        Parameter("differences", "uint32", "out"),
    )
    return Function(f"compare_{value.dtype}", parameters, body)

# SPDX-License-Identifier: Apache-2.0
"""Averages and maxima of windows: several channels at a time."""

from __future__ import annotations

from opwest.compiler.emission.depthwise import pool_windows
from opwest.compiler.emission.function import Call, Lines, call_for, emits
from opwest.compiler.ir.operations import Pool

MAX_ELEMENTS = 255
"""The elements of a window whose sum, plus half of their number, has 16 bits."""
# With inverse = ceil(2**31 / count) and n = |sum| + count / 2 < 2**15, 2 * n * inverse >> 32 is n // count: the
# error of the inverse is below 1, that of the quotient below n / 2**31, less than the 1 / count to the next integer.
QUOTIENT = """\
/* Half of 8 numbers below 2**15, times `inverse` / 2**32: the quotient by a count of at most 255. */
static inline int16x8_t mve_mean(int16x8_t sums, int16_t half, uint32_t inverse)
{
	const uint16x8_t sizes = vaddq_n_u16(vreinterpretq_u16_s16(vabsq_s16(sums)), (uint16_t)half);
	const uint32x4_t by = vdupq_n_u32(inverse);
	const uint32x4_t even = vmulhq_u32(vshlq_n_u32(vmovlbq_u16(sizes), 1), by);
	const uint32x4_t odd = vmulhq_u32(vshlq_n_u32(vmovltq_u16(sizes), 1), by);
	const uint16x8_t both = vmovntq_u32(vmovnbq_u32(vdupq_n_u16(0), even), odd);
	const int16x8_t means = vreinterpretq_s16_u16(both);

	return vnegq_m_s16(means, means, vcmpltq_n_s16(sums, 0));
}
"""


@emits(Pool, "mve-lanes", has_pitch=True)
def render_pool(operation: Pool) -> Call | None:
    """Return the call; None for other dtypes and kinds, and for large windows."""
    data, window = operation.inputs[0], operation.window
    is_average = operation.kind == "average"
    if data.dtype != "int8" or operation.kind not in ("average", "maximum"):
        return None
    if (is_average and window.size[0] * window.size[1] > MAX_ELEMENTS) or window.dilation != (1, 1):
        return None
    depth = data.shape[3]
    lines, lanes = Lines(), 8 if is_average else 16
    with pool_windows(lines, operation):
        if is_average:
            lines.add("const uint32_t count = (uint32_t)((y1 - y0) * (x1 - x0));")
            lines.add("const uint32_t inverse = (UINT32_C(0x7fffffff) + count) / count;")
        lines.add("")
        with lines.block(f"for (int c = 0; c < {depth}; c += {lanes})"):
            _group(lines, operation, is_average)
    definitions = (QUOTIENT,) if is_average else ()
    base = f"{operation.kind}_pool"
    return call_for(operation, base, lines, {"data": data}, headers=("arm_mve.h",), definitions=definitions)


def _group(lines: Lines, operation: Pool, is_average: bool) -> None:
    """Append some channels of a result."""
    _, _, width, depth = operation.inputs[0].shape
    lanes, kind = (8, "s16") if is_average else (16, "s8")
    vector = "int16x8_t" if is_average else "int8x16_t"
    lines.add(f"const mve_pred16_t some = vctp{128 // lanes}q((uint32_t)({depth} - c));")
    lines.add("const int8_t *row = from + c;", f"{vector} value = vdupq_n_{kind}({0 if is_average else -128});", "")
    with lines.block(f"for (int iy = y0; iy < y1; iy++, row += {width * depth})"):
        lines.add("const int8_t *p = row;", "")
        with lines.block(f"for (int ix = x0; ix < x1; ix++, p += {depth})"):
            update = "vaddq_s16" if is_average else "vmaxq_s8"
            lines.add(f"value = {update}(value, vldrbq_z_{kind}(p, some));")
    if is_average:
        lines.add("value = mve_mean(value, (int16_t)(count / 2), inverse);")
    low, high = operation.low, operation.high
    if (low, high) not in ((None, None), (-128, 127)):
        lines.add(f"value = vminq_{kind}(vmaxq_{kind}(value, vdupq_n_{kind}({low})), vdupq_n_{kind}({high}));")
    lines.add(f"vstrbq_p_{kind}(y, value, some);")
    lines.add(f"y += c + {lanes} < {depth} ? {lanes} : {depth} - c;")

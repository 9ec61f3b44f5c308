# SPDX-License-Identifier: Apache-2.0
"""Images and sequences in other sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.compiler.graph.types import Unsupported
from opwest.frontends.torch.build import Builder, Context, Value, translates

_NAMES = (
    *(f"upsample_nearest{n}d" for n in (1, 2, 3)),
    *("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d"),
    *(f"_upsample_nearest_exact{n}d" for n in (1, 2, 3)),
)


@translates(*_NAMES)
def upsample(x: Context, b: Builder) -> Value:
    """By the size of the result; factors that the program has are used for the coordinates, as in torch."""
    data, shape = x.tensor("self", "input"), x.meta.shape
    spatial = data.rank - 2
    name = x.call.operator
    is_nearest = "nearest" in name
    mode = "nearest" if is_nearest else "cubic" if "bicubic" in name else "linear"
    options: dict[str, Any] = {"mode": mode}
    if "exact" in name:
        options |= {"nearest_mode": "round_prefer_ceil", "coordinate_transformation_mode": "half_pixel"}
    elif is_nearest:
        options |= {"nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}
    else:
        aligned = x.flag("align_corners")
        # torch has coordinate 0 for a result of one element with align_corners, as ONNX.
        options["coordinate_transformation_mode"] = "align_corners" if aligned else "half_pixel"
        if mode == "cubic":
            options["cubic_coeff_a"] = -0.75
    factors = _factors(x, spatial)
    if factors is not None:
        wanted = [int(np.floor(n * factor)) for n, factor in zip(data.shape[2:], factors, strict=True)]
        if wanted != list(shape[2:]):
            raise Unsupported(f"the factors {factors} of {list(data.shape)} and the result {list(shape)}")
        if any(n * factor != out for n, factor, out in zip(data.shape[2:], factors, shape[2:], strict=True)):
            scales = b.constant(np.asarray([1, 1, *factors], np.float32))
            return b.op("Resize", [data, None, scales], shape, **options)
    return b.op("Resize", [data, None, None, b.ints(shape)], shape, **options)


def _factors(x: Context, spatial: int) -> list[float] | None:
    """Return the factors that the program has; None if it has only sizes."""
    given = x.get("scale_factors")
    if isinstance(given, list) and len(given) == spatial:
        return [float(factor) for factor in given]
    names = {1: ("scales",), 2: ("scales_h", "scales_w"), 3: ("scales_d", "scales_h", "scales_w")}[spatial]
    if all(x.has(name) for name in names):
        return [float(x.number(name)) for name in names]
    return None

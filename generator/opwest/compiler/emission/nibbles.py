# SPDX-License-Identifier: Apache-2.0
"""Weights of 4 bits, two in a byte of flash: which layers have them, and their words."""

from __future__ import annotations

from typing import Any

import numpy as np

LOW, HIGH = -8, 7
"""The range of weights of 4 bits."""
LEAST = 256
"""The fewest weights that are packed: with fewer, the instructions that take them apart need more flash."""


def are_nibbles(weights: Any) -> bool:
    """Whether weights without their zero point fit in 4 bits, and are enough of them."""
    return bool(weights.size >= LEAST and weights.min() >= LOW and weights.max() <= HIGH)


def packed_nibbles(weights: Any) -> Any:
    """Return bytes [o,(k + 1) / 2] of weights [o,k]: the weight of an even k in the low half, sign included."""
    padded = np.pad(weights, ((0, 0), (0, weights.shape[1] % 2))).astype(np.uint8)
    return (padded[:, 0::2] & 15 | padded[:, 1::2] << 4).view(np.int8)


def words_of(weights: Any, order: tuple[int, ...]) -> Any:
    """Return int32 words [..., k / 8] of weights [..., k] plus 8: eight of them in `order`, the low bits first."""
    taps = weights.astype(np.int64).reshape(*weights.shape[:-1], -1, 8)[..., order] - LOW
    return (taps << (4 * np.arange(8))).sum(axis=-1).astype(np.uint32).view(np.int32)

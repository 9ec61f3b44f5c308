# SPDX-License-Identifier: Apache-2.0
"""Attention: products of queries, keys and values. Source: torch.nn.functional.scaled_dot_product_attention."""

from __future__ import annotations

import math

import numpy as np

from opwest.compiler.graph.types import Unsupported
from opwest.frontends.torch.build import Builder, Context, Value, broadcast, translates

_MASKED = -1e30
"""What a mask adds: infinite numbers would give NaN for a row without keys."""


@translates(
    "scaled_dot_product_attention",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_attention_math_for_mps",
)
def attention(x: Context, b: Builder) -> list[Value | None]:
    """softmax(query @ key' * scale + mask) @ value."""
    query, key, value = (x.tensor(name) for name in ("query", "key", "value"))
    if x.number("dropout_p", 0):
        raise Unsupported("dropout of a training", "dropout_p=0", "export model.eval()")
    scale = float(x.number("scale", 1 / math.sqrt(query.shape[-1])))
    if x.flag("enable_gqa") and query.shape[-3] != key.shape[-3]:
        key, value = (_repeated(b, item, query.shape[-3]) for item in (key, value))
    order = [*range(key.rank - 2), key.rank - 1, key.rank - 2]
    turned = b.transpose(key, order)
    shape = (*broadcast(query.shape[:-2], key.shape[:-2]), query.shape[-2], key.shape[-2])
    # torch multiplies both operands with the root of the scale; one product has the same result up to rounding.
    scores = b.op("MatMul", [b.binary("Mul", query, scale), turned], shape)
    mask = x.optional("attn_mask")
    if x.flag("is_causal"):
        mask = b.constant(np.tril(np.ones(shape[-2:], bool)))
    if mask is not None and mask.dtype == "bool":
        if mask.content is not None:
            added = np.where(mask.content, np.float32(0), np.float32(_MASKED))
            scores = b.binary("Add", scores, b.constant(added))
        else:
            limit = b.operand(_MASKED, scores.dtype)
            scores = b.op("Where", [mask, scores, limit], broadcast(mask.shape, shape), scores.dtype)
    elif mask is not None:
        scores = b.binary("Add", scores, _finite(b, mask))
    weights = b.op("Softmax", [scores], scores.shape, axis=len(scores.shape) - 1)
    result = b.op("MatMul", [weights, value], x.meta.shape)
    return [result, *[None] * (len(x.call.results) - 1)]


def _finite(b: Builder, mask: Value) -> Value:
    """Return a constant mask without infinite numbers."""
    if mask.content is None:
        return mask
    return b.constant(np.maximum(mask.content, np.float32(_MASKED)).astype(np.float32))


def _repeated(b: Builder, value: Value, count: int) -> Value:
    """Return a value whose heads are repeated."""
    *batch, heads, rows, depth = value.shape
    wide = b.reshape(value, (*batch, heads, 1, rows, depth))
    return b.reshape(b.expand(wide, (*batch, heads, count // heads, rows, depth)), (*batch, count, rows, depth))


@translates("_safe_softmax")
def safe_softmax(x: Context, b: Builder) -> Value:
    """Softmax; rows of infinite negative numbers only are not supported."""
    data = x.tensor("self")
    return b.op("Softmax", [data], data.shape, axis=x.integer("dim") % max(data.rank, 1))

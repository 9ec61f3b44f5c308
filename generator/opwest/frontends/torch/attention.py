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
    weights = _masked_softmax(b, scores, mask)
    result = b.op("MatMul", [weights, value], x.meta.shape)
    return [result, *[None] * (len(x.call.results) - 1)]


def _masked_softmax(b: Builder, scores: Value, mask: Value | None) -> Value:
    """Return the weights of the keys; those of a query without keys are 0, as in torch."""
    axis = scores.rank - 1
    if mask is None:
        return b.op("Softmax", [scores], scores.shape, axis=axis)
    if mask.content is not None:
        is_bool = mask.dtype == "bool"
        content = np.where(mask.content, np.float32(0), np.float32(-np.inf)) if is_bool else mask.content
        added = b.binary("Add", scores, b.constant(np.maximum(content, np.float32(_MASKED)).astype(np.float32)))
        weights = b.op("Softmax", [added], added.shape, axis=axis)
        has_keys = (content > -np.inf).any(axis=-1, keepdims=True)
        return weights if has_keys.all() else b.binary("Mul", weights, b.constant(has_keys.astype(np.float32)))
    if mask.dtype != "bool":
        return _safe_softmax(b, b.binary("Add", scores, mask), axis)
    shape = broadcast(mask.shape, scores.shape)
    chosen = b.op("Where", [mask, scores, b.operand(_MASKED, scores.dtype)], shape, scores.dtype)
    weights = b.op("Softmax", [chosen], shape, axis=axis)
    kept = (*mask.shape[:-1], 1)
    has_keys_now = b.op("ReduceMax", [b.cast(mask, scores.dtype), b.ints([mask.rank - 1])], kept, keepdims=1)
    return b.binary("Mul", weights, has_keys_now)


def _safe_softmax(b: Builder, scores: Value, axis: int) -> Value:
    """Return a softmax whose rows of infinite negative numbers only are 0."""
    kept = [1 if i == axis else n for i, n in enumerate(scores.shape)]
    is_empty = b.binary("Equal", b.op("ReduceMax", [scores, b.ints([axis])], kept, keepdims=1), -np.inf)
    weights = b.op("Softmax", [scores], scores.shape, axis=axis)
    return b.op("Where", [is_empty, b.operand(0.0, scores.dtype), weights], scores.shape, scores.dtype)


def _repeated(b: Builder, value: Value, count: int) -> Value:
    """Return a value whose heads are repeated."""
    *batch, heads, rows, depth = value.shape
    wide = b.reshape(value, (*batch, heads, 1, rows, depth))
    return b.reshape(b.expand(wide, (*batch, heads, count // heads, rows, depth)), (*batch, count, rows, depth))


@translates("_safe_softmax")
def safe_softmax(x: Context, b: Builder) -> Value:
    """Softmax; rows of infinite negative numbers only are 0."""
    data = x.tensor("self")
    return _safe_softmax(b, data, x.integer("dim") % max(data.rank, 1))

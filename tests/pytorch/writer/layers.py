# SPDX-License-Identifier: Apache-2.0
"""Operators with weights or products: convolutions, products, norms, recurrence. Runs in the environment of PyTorch."""

import torch
from draws import coin, dimension, fill, integers, normal, operator, pick, shape_of, weights
from torch import nn
from torch.nn import functional


def _convolution(name, spatial):
    @operator(name, "Conv", True)
    def make(random):
        groups = int(random.choice([1, 1, 2, 3]))
        inner, outer = groups * int(random.choice([1, 1, 2, 4])), groups * int(random.integers(1, 4))
        kernel = random.integers(1, 4, spatial).tolist()
        strides, dilation = random.integers(1, 4, spatial).tolist(), random.integers(1, 3, spatial).tolist()
        padding = pick(random, 0, 1, "same", "valid", random.integers(0, 3, spatial).tolist())
        options = {"groups": groups, "bias": coin(random, 0.8), "dilation": dilation}
        if padding != "same":
            options["stride"] = strides
        mode = pick(random, "zeros", "zeros", "zeros", "reflect", "replicate", "circular")
        if not isinstance(padding, list):
            options["padding_mode"] = mode
        kind = nn.Conv1d if spatial == 1 else nn.Conv2d
        layer = fill(random, kind(inner, outer, kernel, padding=padding, **options))
        if coin(random, 0.4):
            layer = nn.Sequential(layer, pick(random, nn.ReLU(), nn.ReLU6(), nn.Hardtanh()))
        batch = int(random.integers(1, 3))
        return layer, [normal(batch, inner, *random.integers(7, 11, spatial))]


_convolution("conv1d", 1)
_convolution("conv2d", 2)


@operator("convolution_batch_norm", "Conv", True, "batch_norm")
def convolution_batch_norm(random):
    inner, outer = int(random.integers(1, 5)), int(random.integers(1, 6))
    two = coin(random)
    layer, norm = (nn.Conv2d, nn.BatchNorm2d) if two else (nn.Conv1d, nn.BatchNorm1d)
    parts = [layer(inner, outer, 3, padding=1, bias=coin(random)), norm(outer, eps=1e-3), nn.ReLU()]
    return fill(random, nn.Sequential(*parts)), [normal(1, inner, *random.integers(5, 9, 1 + two))]


def _transposed(name, spatial):
    @operator(name, "ConvTranspose", spatial == 2)
    def make(random):
        groups = int(random.choice([1, 1, 2]))
        inner, outer = groups * int(random.integers(1, 4)), groups * int(random.integers(1, 4))
        kernel, strides = random.integers(2, 4, spatial).tolist(), random.integers(1, 3, spatial).tolist()
        options = {"padding": random.integers(0, 2, spatial).tolist(), "groups": groups, "bias": coin(random, 0.8)}
        if coin(random, 0.4):
            options["output_padding"] = [n - 1 for n in strides]
        elif coin(random, 0.4):
            options["dilation"] = random.integers(1, 3, spatial).tolist()
        kind = nn.ConvTranspose1d if spatial == 1 else nn.ConvTranspose2d
        layer = fill(random, kind(inner, outer, kernel, stride=strides, **options))
        return layer, [normal(1, inner, *random.integers(3, 7, spatial))]


_transposed("conv_transpose1d", 1)
_transposed("conv_transpose2d", 2)


@operator("linear", "Gemm", True)
def linear(random):
    inner, outer = int(random.integers(1, 12)), int(random.integers(1, 8))
    layer = fill(random, nn.Linear(inner, outer, bias=coin(random, 0.8)))
    return layer, [normal(*shape_of(random, 1, 3), inner)]


@operator("addmm", "Gemm")
def addmm(random):
    a, b, c = (int(n) for n in random.integers(1, 7, 3))
    beta, alpha = pick(random, (1, 1), (0.5, 2), (1, -1))
    bias = weights(random, *pick(random, [c], [a, c], [1, c]))
    return (lambda x, y: torch.addmm(bias, x, y, beta=beta, alpha=alpha)), [normal(a, b), normal(b, c)]


@operator("mm", "MatMul")
def mm(random):
    a, b, c = (int(n) for n in random.integers(1, 9, 3))
    if coin(random):
        other = weights(random, b, c)
        return (lambda x: torch.mm(x, other)), [normal(a, b)]
    return torch.mm, [normal(a, b), normal(b, c)]


@operator("bmm", "MatMul", True)
def bmm(random):
    n, a, b, c = (int(n) for n in random.integers(1, 6, 4))
    return torch.bmm, [normal(n, a, b), normal(n, b, c)]


@operator("matmul", "MatMul")
def matmul(random):
    batch = shape_of(random, 0 + 1, 2, 3)
    a, b, c = (int(n) for n in random.integers(1, 6, 3))
    one, two = pick(random, ([a, b], [b, c]), ([b], [b, c]), ([a, b], [b]), ([b], [b]))
    if len(one) == 2 and coin(random, 0.7):
        one = [*batch, *one]
    if len(two) == 2 and coin(random, 0.4):
        two = [*(1 if coin(random, 0.3) else n for n in batch), *two]
    return torch.matmul, [normal(*one), normal(*two)]


@operator("baddbmm", "MatMul")
def baddbmm(random):
    n, a, b, c = (int(n) for n in random.integers(1, 5, 4))
    bias = weights(random, n, a, c)
    return (lambda x, y: torch.baddbmm(bias, x, y)), [normal(n, a, b), normal(n, b, c)]


@operator("einsum", "Einsum")
def einsum(random):
    i, j, k = (int(n) for n in random.integers(1, 5, 3))
    text, one, two = pick(
        random, ("bij,bjk->bik", (2, i, j), (2, j, k)), ("bij,ijk->bk", (2, i, j), (i, j, k)),
        ("ij,jk->ki", (i, j), (j, k)), ("bhid,bhjd->bhij", (1, 2, i, k), (1, 2, j, k)), ("i,j->ij", (i,), (j,)),
    )  # fmt: skip
    return (lambda x, y: torch.einsum(text, x, y)), [normal(*one), normal(*two)]


@operator("batch_norm", "BatchNormalization")
def batch_norm(random):
    depth, spatial = int(random.integers(1, 6)), int(random.integers(0, 3))
    kind = nn.BatchNorm2d if spatial == 2 else nn.BatchNorm1d
    layer = fill(random, kind(depth, eps=float(random.choice([1e-5, 1e-3])), affine=coin(random, 0.8)))
    return layer, [normal(int(random.integers(1, 3)), depth, *random.integers(1, 6, spatial))]


@operator("layer_norm", "LayerNormalization")
def layer_norm(random):
    shape = shape_of(random, 2, 4)
    last = int(random.integers(1, len(shape)))
    shape[-1] += 2
    options = {"eps": float(random.choice([1e-5, 1e-3])), "elementwise_affine": coin(random, 0.8)}
    return fill(random, nn.LayerNorm(shape[-last:], **options)), [normal(*shape)]


@operator("rms_norm", "LayerNormalization")
def rms_norm(random):
    shape = shape_of(random, 2, 4)
    return fill(random, nn.RMSNorm(shape[-1:], eps=1e-5)), [normal(*shape)]


@operator("group_norm", "GroupNormalization")
def group_norm(random):
    groups, each = int(random.integers(1, 4)), int(random.integers(1, 4))
    layer = fill(random, nn.GroupNorm(groups, groups * each, affine=coin(random, 0.8)))
    return layer, [normal(1, groups * each, *random.integers(2, 6, int(random.integers(1, 3))))]


@operator("instance_norm", "InstanceNormalization")
def instance_norm(random):
    depth, spatial = int(random.integers(1, 5)), int(random.integers(1, 3))
    kind = nn.InstanceNorm1d if spatial == 1 else nn.InstanceNorm2d
    return fill(random, kind(depth, affine=coin(random))), [normal(1, depth, *random.integers(3, 7, spatial))]


def _softmax(name, bound):
    function = getattr(functional, name)

    @operator(name, bound)
    def make(random):
        shape = shape_of(random)
        axis = dimension(random, shape)
        return (lambda x: function(x, axis)), [normal(*shape)]


_softmax("softmax", "Softmax")
_softmax("log_softmax", "LogSoftmax")


@operator("embedding", "Gather")
def embedding(random):
    count, size = int(random.integers(2, 12)), int(random.integers(1, 7))
    layer = fill(random, nn.Embedding(count, size, padding_idx=0 if coin(random, 0.3) else None))
    return layer, [integers(0, count, *shape_of(random, 1, 2))]


class Recurrent(nn.Module):
    """A recurrent layer whose results are all that torch gives, or a part."""

    def __init__(self, layer, part):
        super().__init__()
        self.layer, self.part = layer, part

    def forward(self, x):
        results, last = self.layer(x)
        states = list(last) if isinstance(last, tuple) else [last]
        return {"all": [results, *states], "results": [results], "last": states}[self.part]


def _recurrent(name, bound, kind, **more):
    @operator(name, bound)
    def make(random):
        inner, size = int(random.integers(1, 6)), int(random.integers(1, 6))
        options = {"num_layers": int(random.choice([1, 1, 2])), "bidirectional": coin(random, 0.3)}
        options |= {"batch_first": coin(random), "bias": coin(random, 0.8), **more}
        if kind is nn.LSTM and coin(random, 0.2) and size > 1:
            options["proj_size"] = size - 1
        layer = fill(random, kind(inner, size, **options))
        length = int(random.integers(1, 7))
        shape = (1, length, inner) if options["batch_first"] else (length, 1, inner)
        return Recurrent(layer, pick(random, "all", "results", "last")), [normal(*shape, scale=1)]


_recurrent("lstm", "LSTM", nn.LSTM)
_recurrent("gru", "GRU", nn.GRU)
_recurrent("rnn_tanh", "RNN", nn.RNN)
_recurrent("rnn_relu", "RNN", nn.RNN, nonlinearity="relu")


@operator("gru_cell", "GRU", overload="gru_cell|linear")
def gru_cell(random):
    inner, size = int(random.integers(1, 6)), int(random.integers(1, 6))
    return fill(random, nn.GRUCell(inner, size)), [normal(1, inner, scale=1), normal(1, size, scale=1)]


@operator("scaled_dot_product_attention", "MatMul")
def attention(random):
    heads, length, other, size = (int(n) for n in random.integers(1, 6, 4))
    kind = pick(random, "plain", "causal", "mask", "booleans", "scale")
    options = {}
    if kind == "causal":
        other, options["is_causal"] = length, True
    elif kind == "mask":
        options["attn_mask"] = weights(random, length, other)
    elif kind == "booleans":
        options["attn_mask"] = torch.from_numpy(random.random((length, other)) < 0.7) | torch.eye(length, other).bool()
        options["attn_mask"][:, 0] = True
    elif kind == "scale":
        options["scale"] = 0.3
    draws = [normal(1, heads, length, size), normal(1, heads, other, size), normal(1, heads, other, size)]
    return (lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, **options)), draws


@operator("local_response_norm", "LRN", overload="avg_pool3d|avg_pool2d|avg_pool1d|pow")
def local_response_norm(random):
    depth, size = int(random.integers(2, 6)), int(random.choice([1, 3, 5]))
    return (lambda x: functional.local_response_norm(x, size, 1e-2)), [normal(1, depth, *random.integers(2, 5, 2))]

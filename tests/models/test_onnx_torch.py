# SPDX-License-Identifier: Apache-2.0
"""Small networks of PyTorch, exported by both exporters in several opsets, float and quantised, against onnxruntime.

Graphs of the same patterns without PyTorch: test_onnx_float.py, test_onnx_movement.py, test_onnx_files.py.
"""

import importlib.util
import io
import warnings

import numpy as np
import pytest
from campaign import sized
from models.bounds import ONNX
from models.onnx_quantised import dynamic, quantised
from models.onnx_support import check
from onnx import load_from_string
from requirements_support import skip_here

if any(importlib.util.find_spec(name) is None for name in ("torch", "onnxscript")):
    skip_here("PyTorch or onnxscript is not installed; CI does without such large packages")

import torch
from torch import nn
from torch.nn import functional

EXPORTS = [(False, 17, False), (True, 18, True)]
EXPORTS += sized([], [(False, 14, True), (False, 20, False), (True, 20, False), (True, 21, True)])
"""With torch.export or by tracing, the opset, and whether the batch has a symbolic size."""
LIMITS = (0, 20)
"""Of integer inputs: indices of words."""


class Inverted(nn.Module):
    def __init__(self, depth, out, stride, factor):
        super().__init__()
        wide = depth * factor
        self.adds = stride == 1 and depth == out
        self.layers = nn.Sequential(
            nn.Conv2d(depth, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU6(inplace=True),
            nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False), nn.BatchNorm2d(wide), nn.ReLU6(inplace=True),
            nn.Conv2d(wide, out, 1, bias=False), nn.BatchNorm2d(out),
        )  # fmt: skip

    def forward(self, x):
        return x + self.layers(x) if self.adds else self.layers(x)


def mobilenet():
    blocks = [Inverted(8, 8, 1, 2), Inverted(8, 12, 2, 3), Inverted(12, 12, 1, 3)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(12, 10)]
    return nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU6(), *blocks, *head), image(3)


class Residual(nn.Module):
    def __init__(self, depth, out, stride):
        super().__init__()
        self.one, self.two = nn.Conv2d(depth, out, 3, stride, 1, bias=False), nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.first, self.second = nn.BatchNorm2d(out), nn.BatchNorm2d(out)
        self.side = nn.Sequential(nn.Conv2d(depth, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = functional.relu(self.first(self.one(x)))
        return functional.relu(self.second(self.two(y)) + self.side(x))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
        )
        self.blocks = nn.Sequential(Residual(8, 8, 1), Residual(8, 16, 2))
        self.pool, self.head = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(16, 5)

    def forward(self, x):
        y = self.pool(self.blocks(self.stem(x)))
        return self.head(torch.flatten(y, 1))


def keywords():
    """A depthwise-separable network of spectrograms."""
    layers = [nn.Conv2d(1, 8, (10, 4), 2, (4, 1)), nn.BatchNorm2d(8), nn.ReLU()]
    for _ in range(2):
        layers += [nn.Conv2d(8, 8, 3, padding="same", groups=8), nn.BatchNorm2d(8), nn.ReLU()]
        layers += [nn.Conv2d(8, 8, 1), nn.BatchNorm2d(8), nn.ReLU()]
    layers += [nn.AvgPool2d((24, 4)), nn.Flatten(), nn.Linear(8, 12), nn.Softmax(-1)]
    return nn.Sequential(*layers), (torch.randn(1, 1, 49, 10),)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1), nn.Conv2d(8, 8, 3, 1, 1)
        self.up = nn.ConvTranspose2d(8, 8, 3, stride=2, padding=1, output_padding=1)
        self.d, self.e = nn.Conv2d(16, 4, 3, padding=1), nn.Conv2d(8, 1, 1)
        self.twice = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)

    def forward(self, x):
        a = functional.relu(self.a(x))
        b = functional.relu(self.b(functional.max_pool2d(a, 2)))
        c = functional.relu(self.c(functional.max_pool2d(b, 2)))
        d = self.d(torch.cat([self.up(c), b], 1))
        d = functional.interpolate(d, size=a.shape[2:], mode="nearest")
        other = self.twice(functional.avg_pool2d(d, 2))
        return torch.sigmoid(self.e(torch.cat([d + other, a], 1)))


class Recurrent(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.layer = kind(6, 7, batch_first=True, **options)
        self.head = nn.Linear(14 if options.get("bidirectional") else 7, 3)

    def forward(self, x):
        y, _ = self.layer(x)
        return self.head(y[:, -1])


class LastState(nn.Module):
    """The classifier reads the last states of both directions."""

    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.GRU(6, 5, bidirectional=True), nn.Linear(10, 4)

    def forward(self, x):
        _, h = self.layer(x.transpose(0, 1))
        return torch.log_softmax(self.head(torch.cat([h[0], h[1]], dim=1)), 1)


class Embedded(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.layer, self.head = nn.Embedding(20, 6), nn.LSTM(6, 5, num_layers=2), nn.Linear(5, 2)

    def forward(self, x):
        y, (h, _) = self.layer(self.words(x).permute(1, 0, 2))
        return self.head(h[-1]) + y.mean(0).sum(1, keepdim=True)


def waves():
    layers = [nn.Conv1d(2, 8, 9, 2, 4), nn.BatchNorm1d(8), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(8, 8, 3, groups=8)]
    layers += [nn.Conv1d(8, 12, 1), nn.BatchNorm1d(12), nn.LeakyReLU(0.1), nn.AvgPool1d(3, 2, 1), nn.ZeroPad1d((1, 2))]
    layers += [nn.ConvTranspose1d(12, 4, 4, 2, 1), nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.Linear(4, 3)]
    layers += [nn.BatchNorm1d(3), nn.Tanh()]
    return nn.Sequential(*layers), (torch.randn(1, 2, 64),)


class Causal(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(4, 4, 3, dilation=2**i, padding=2 * 2**i) for i in range(3))
        self.gates = nn.ModuleList(nn.Conv1d(4, 4, 1) for _ in range(3))

    def forward(self, x):
        total = 0
        for layer, gate in zip(self.layers, self.gates, strict=True):
            y = layer(x)[:, :, : x.shape[2]]
            y = torch.tanh(y) * torch.sigmoid(gate(y))
            x, total = x + y, total + y
        return functional.relu(total)[..., -1].softmax(-1)


def encoder(**options):
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0, **options)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), (torch.randn(1, 6, 8),)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.layer = nn.LayerNorm(8), nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        y = self.norm(x)
        mask = torch.triu(torch.full((x.shape[1], x.shape[1]), float("-inf")), 1)
        y, weights = self.layer(y, y, y, attn_mask=mask)
        return x + y, weights


class Vision(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 4, 4)
        self.token, self.places = nn.Parameter(torch.randn(1, 1, 8)), nn.Parameter(torch.randn(1, 17, 8))
        self.norm, self.qkv, self.out = nn.LayerNorm(8), nn.Linear(8, 24), nn.Linear(8, 8)
        self.mlp = nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 16), nn.GELU(approximate="tanh"), nn.Linear(16, 8))
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        n, length, depth = x.shape
        q, k, v = self.qkv(self.norm(x)).reshape(n, length, 3, 2, depth // 2).permute(2, 0, 3, 1, 4).unbind(0)
        y = functional.scaled_dot_product_attention(q, k, v)
        x = x + self.out(y.transpose(1, 2).reshape(n, length, depth))
        return self.head((x + self.mlp(x))[:, 0])


def autoencoder():
    layers = [nn.Conv2d(1, 8, 3, 2, 1), nn.GroupNorm(2, 8), nn.SiLU(), nn.Conv2d(8, 4, 3, 2, 1)]
    layers += [nn.InstanceNorm2d(4, affine=True), nn.ELU(0.7), nn.ConvTranspose2d(4, 8, 2, 2), nn.InstanceNorm2d(8)]
    layers += [nn.Mish(), nn.ConvTranspose2d(8, 8, 4, 2, 1, groups=2), nn.GroupNorm(8, 8, affine=False), nn.SELU()]
    return nn.Sequential(*layers, nn.Conv2d(8, 1, 1)), (torch.randn(1, 1, 16, 16),)


class Excited(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.Hardswish())
        self.down, self.up = nn.Conv2d(8, 4, 1), nn.Conv2d(4, 8, 1)
        self.linear = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 8), nn.Hardsigmoid())

    def forward(self, x):
        y = self.conv(x)
        s = functional.adaptive_avg_pool2d(y, 1)
        y = y * functional.hardsigmoid(self.up(functional.relu(self.down(s))))
        b, c, _, _ = y.shape
        return (y * self.linear(y.mean((2, 3))).view(b, c, 1, 1)).amax((2, 3))


class Sharper(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.slope = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 12, 3, 1, 1), nn.PReLU(4)
        self.pad = nn.ReflectionPad2d(1)

    def forward(self, x):
        y = functional.pixel_shuffle(self.b(self.slope(self.a(x))), 2)
        z = functional.interpolate(x, scale_factor=2, mode="bicubic", align_corners=False)
        return functional.pixel_unshuffle(self.pad((y + z).clamp(-1, 1))[:, :, 1:-1, 1:-1], 2)


class Pools(nn.Module):
    def __init__(self):
        super().__init__()
        self.pools = nn.ModuleList([
            nn.MaxPool2d(3, 2, 1, dilation=2), nn.MaxPool2d(2, 2, ceil_mode=True),
            nn.MaxPool2d(3, 3, 1, ceil_mode=True),
            nn.AvgPool2d(3, 2, 1), nn.AvgPool2d(3, 2, 1, count_include_pad=False),
            nn.AvgPool2d(3, 2, 1, ceil_mode=True), nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False),
            nn.AdaptiveAvgPool2d((3, 5)), nn.AdaptiveMaxPool2d(5), nn.LPPool2d(2, 3, 2),
        ])  # fmt: skip

    def forward(self, x):
        return tuple(pool(x) for pool in self.pools)


class Convolutions(nn.Module):
    """Dilated and grouped convolutions, circular and replicated padding, three dimensions of one element."""

    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(4, 8, 3, padding=2, dilation=2, groups=2)
        self.b = nn.Conv2d(8, 8, 3, padding=1, padding_mode="circular", groups=4)
        self.c = nn.Conv2d(8, 16, 3, padding=(0, 1), padding_mode="replicate", groups=8, dilation=(1, 3))
        self.d = nn.Conv3d(16, 3, (1, 3, 3))

    def forward(self, x):
        y = self.c(self.b(self.a(x)))
        return self.d(y.unsqueeze(2)).squeeze(2)


class Products(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(3, 4, 5))

    def forward(self, x, y):
        one = torch.einsum("bij,bjk->bik", x, y)
        two = torch.einsum("bij,ijk->bk", x, self.w)
        three = torch.einsum("bij,bkj->bk", x, y.transpose(1, 2))
        four = torch.matmul(x.unsqueeze(1), y) @ torch.ones(2)
        five = torch.baddbmm(one, x, y) + torch.outer(x[0, 0], y[0, :, 0]).sum()
        return one, two, three, four, five


class Loose(nn.Module):
    """Functions of tensors that models call between layers."""

    def forward(self, x):
        a, b, c = torch.chunk(x, 3, dim=1)
        d = torch.where(a > 0, b, c).masked_fill(c > 1, 0.5)
        e = torch.stack([a, b, d], 1).flatten(1, 2).roll(1, 2)
        f = torch.cumsum(e, -1) / (e.norm(dim=1, keepdim=True) + 1) + functional.normalize(e, dim=1)
        g = torch.cat([f.std((2, 3)), f.var(1).flatten(1)[:, :4], f.argmax(1).float().mean((1, 2))[:, None]], 1)
        h = f.repeat(1, 1, 2, 1)[:, :, ::2].flip(3).permute(0, 2, 3, 1).contiguous()
        index = torch.tensor([2, 0, 1])
        i = torch.logsumexp(h, 1) + h[:, :, index[:1]].squeeze(2).sum(1, keepdim=True)[..., :1]
        values, places = torch.topk(f.flatten(1), 3)
        j = functional.softplus(values) + functional.softsign(values) * places.to(torch.float32).rsqrt().nan_to_num(1)
        return g, h, i, j, torch.maximum(a, b).pow(2).sqrt().exp().log1p(), functional.logsigmoid(x).tril()


class Branches(nn.Module):
    """A loop of fixed length over a list, and branches by shape."""

    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.GRUCell(4, 5), nn.Linear(5, 2)

    def forward(self, x):
        h = x.new_zeros(x.shape[0], 5)
        for turn in range(x.shape[1]):
            h = self.cell(x[:, turn], h)
        return self.head(h) if x.shape[1] > 2 else h


def image(depth, size=24):
    return (torch.randn(1, depth, size, size),)


def sequence():
    return (torch.randn(1, 7, 6),)


MODELS = {
    "mobilenet": mobilenet,
    "resnet": lambda: (ResNet(), image(3, 32)),
    "keywords": keywords,
    "unet": lambda: (UNet(), image(1, 16)),
    "lstm": lambda: (Recurrent(nn.LSTM), sequence()),
    "gru": lambda: (Recurrent(nn.GRU), sequence()),
    "gru both ways": lambda: (Recurrent(nn.GRU, bidirectional=True), sequence()),
    "lstm both ways": lambda: (Recurrent(nn.LSTM, bidirectional=True, num_layers=2), sequence()),
    "rnn": lambda: (Recurrent(nn.RNN, nonlinearity="relu"), sequence()),
    "last state": lambda: (LastState(), sequence()),
    "embedded": lambda: (Embedded(), (torch.randint(0, 20, (1, 6)),)),
    "waves": waves,
    "causal": lambda: (Causal(), (torch.randn(1, 4, 20),)),
    "encoder": encoder,
    "encoder gelu": lambda: encoder(activation="gelu", norm_first=True),
    "attention": lambda: (Attention(), (torch.randn(1, 5, 8),)),
    "vision": lambda: (Vision(), image(3, 16)),
    "autoencoder": autoencoder,
    "excited": lambda: (Excited(), image(3, 10)),
    "sharper": lambda: (Sharper(), image(3, 8)),
    "pools": lambda: (Pools(), image(2, 15)),
    "convolutions": lambda: (Convolutions(), image(4, 9)),
    "products": lambda: (Products(), (torch.randn(2, 3, 4), torch.randn(2, 4, 2))),
    "loose": lambda: (Loose(), image(6, 5)),
    "branches": lambda: (Branches(), (torch.randn(1, 5, 4),)),
}


def exported(name, dynamo, opset, batch=False):
    """Return the content of an ONNX file; `batch`: with a symbolic first dimension."""
    torch.manual_seed(14)
    model, inputs = MODELS[name]()
    model.eval()
    for one in model.modules():
        if isinstance(one, nn.BatchNorm1d | nn.BatchNorm2d):
            one.running_mean.normal_(0, 0.3)
            one.running_var.uniform_(0.5, 1.5)
    options = {"dynamo": dynamo, "opset_version": opset}
    names = [f"x{i}" for i in range(len(inputs))]
    if batch and dynamo:
        options["dynamic_shapes"] = tuple({0: torch.export.Dim("batch")} for _ in inputs)
        inputs = tuple(torch.cat([one, one]) for one in inputs)
    elif batch:
        options["dynamic_axes"] = {one: {0: "batch"} for one in names}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if dynamo:
            program = torch.onnx.export(model, inputs, input_names=names, verbose=False, **options)
            return program.model_proto.SerializeToString()
        file = io.BytesIO()
        torch.onnx.export(model, inputs, file, input_names=names, **options)
        return file.getvalue()


@pytest.mark.parametrize("name", MODELS)
def test_float(name, tmp_path):
    random = np.random.default_rng(90)
    contents = [exported(name, *options) for options in EXPORTS]
    graphs = check(contents, tmp_path, random, ONNX["network"], limits=LIMITS)
    for graph, (_, _, batch) in zip(graphs, EXPORTS, strict=True):
        assert not batch or (all(one.shape[0] == 1 for one in graph.inputs) and graph.remarks)


FORMS = [("QDQ", "int8", True), ("QDQ", "uint8", False), ("QOperator", "uint8", True)]
WITHOUT = {
    "attention": "the tool gives the infinite mask the scale inf",
    "autoencoder": "the tool fails: it takes the scales of grouped ConvTranspose for those of its inputs",
    "products": "the tool writes vectors with several scales, which onnxruntime refuses",
}


FLOAT_RESIZE = ("sharper",)
"""In the form QOperator the tool writes a cubic Resize of uint8, which onnxruntime cannot run."""


@pytest.mark.parametrize("name", [name for name in MODELS if name not in WITHOUT])
def test_quantised(name, tmp_path):
    """With --exact the same bits, apart from float operators between the quantised ones."""
    random = np.random.default_rng(91)
    model = load_from_string(exported(name, False, 17))
    forms = [one for one in FORMS if one[0] == "QDQ" or name not in FLOAT_RESIZE]
    contents = [quantised(model, tmp_path, random, form, data, "int8", per) for form, data, per in forms]
    check(contents, tmp_path / "static", random, ONNX["network"], exact=True, limits=LIMITS)
    content = dynamic(model, tmp_path, "int8", True)
    check([content], tmp_path / "dynamic", random, ONNX["network"], limits=LIMITS)

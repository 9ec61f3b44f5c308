# SPDX-License-Identifier: Apache-2.0
"""Whole networks of speech and sensors, some with state, of torch.nn alone. Runs in the environment of PyTorch.

Each function returns a module and the shapes of its inputs. `whole`: with more layers or longer inputs.
"""

import itertools

import torch
from images import unit
from torch import nn
from torch.nn import functional


def ds_cnn(whole):
    """The depthwise-separable network of keywords of MLPerf Tiny."""
    layers, depth = [nn.Conv2d(1, 8, (10, 4), 2, (5, 1), bias=False), nn.BatchNorm2d(8), nn.ReLU()], 8
    for _ in range(4 if whole else 1):
        layers += [unit(depth, depth, 3, groups=depth, act=nn.ReLU), unit(depth, depth, 1, act=nn.ReLU)]
    layers += [nn.AvgPool2d((25, 5)), nn.Flatten(), nn.Linear(8, 12), nn.Softmax(-1)]
    return nn.Sequential(*layers), [(1, 1, 49, 10)]


class Temporal(nn.Module):
    """The block of TC-ResNet."""

    def __init__(self, inner, outer, stride):
        super().__init__()
        self.one = nn.Sequential(nn.Conv1d(inner, outer, 9, stride, 4, bias=False), nn.BatchNorm1d(outer), nn.ReLU())
        self.two = nn.Sequential(nn.Conv1d(outer, outer, 9, 1, 4, bias=False), nn.BatchNorm1d(outer))
        side = nn.Sequential(nn.Conv1d(inner, outer, 1, stride, bias=False), nn.BatchNorm1d(outer), nn.ReLU())
        self.side = side if inner != outer else nn.Identity()

    def forward(self, x):
        return functional.relu(self.two(self.one(x)) + self.side(x))


def tc_resnet(whole):
    rows = [(16, 24, 2), (24, 32, 2), (32, 48, 2)] if whole else [(8, 12, 2)]
    first = rows[0][0]
    layers = [nn.Conv1d(40, first, 3, 1, 1, bias=False), *(Temporal(*row) for row in rows)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(rows[-1][1], 12)), [(1, 40, 51)]


class Keywords(nn.Module):
    """A recurrent network of spectrograms: the last state of both directions, or the last result."""

    def __init__(self, kind, **options):
        super().__init__()
        self.layer = kind(10, 12, batch_first=True, **options)
        self.head = nn.Linear(24 if options.get("bidirectional") else 12, 6)

    def forward(self, x):
        results, _ = self.layer(x)
        return torch.log_softmax(self.head(functional.relu(results[:, -1])), 1)


def gru_keywords(whole):
    return Keywords(nn.GRU, num_layers=2 if whole else 1), [(1, 25 if whole else 6, 10)]


def lstm_keywords(whole):
    return Keywords(nn.LSTM, bidirectional=whole), [(1, 25 if whole else 6, 10)]


class Crnn(nn.Module):
    """A convolution, a GRU, and the mean of all steps."""

    def __init__(self):
        super().__init__()
        self.front = nn.Sequential(nn.Conv2d(1, 4, (5, 3), (2, 2)), nn.BatchNorm2d(4), nn.ReLU())
        self.layer, self.head = nn.GRU(16, 8, batch_first=True), nn.Linear(8, 4)

    def forward(self, x):
        x = self.front(x).permute(0, 2, 1, 3).flatten(2)
        return self.head(self.layer(x)[0].mean(1))


def crnn(whole):
    return Crnn(), [(1, 1, 31 if whole else 17, 10)]


class Transformer(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.embed = nn.Linear(6, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)
        self.layers, self.head = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False), nn.Linear(8, 3)
        self.register_buffer("places", torch.sin(torch.arange(72.0).view(1, 9, 8) / 3))

    def forward(self, x):
        return self.head(self.layers(self.embed(x) + self.places).mean(1))


def transformer(whole):
    return Transformer(2 if whole else 1), [(1, 9, 6)]


def anomaly(whole):
    """The autoencoder of MLPerf Tiny: dense layers around a narrow one."""
    sizes = [40, 16, 16, 4, 16, 16, 40] if whole else [40, 16, 4, 16, 40]
    layers = []
    for inner, outer in itertools.pairwise(sizes):
        layers += [nn.Linear(inner, outer), nn.BatchNorm1d(outer), nn.ReLU()]
    return nn.Sequential(*layers[:-2]), [(1, 40)]


def ecg(whole):
    """Beats of an electrocardiogram: convolutions of one dimension with growing dilation."""
    layers = [nn.Conv1d(1, 8, 15, 2, 7), nn.BatchNorm1d(8), nn.LeakyReLU(0.1), nn.MaxPool1d(2)]
    for power in range(3 if whole else 1):
        layers += [nn.Conv1d(8, 8, 5, padding=2 * 2**power, dilation=2**power), nn.BatchNorm1d(8), nn.ReLU()]
    return nn.Sequential(*layers, nn.AvgPool1d(2), nn.Flatten(), nn.LazyLinear(5)), [(1, 1, 180)]


class Activity(nn.Module):
    """Human activity: convolutions and an LSTM over nine axes of sensors."""

    def __init__(self):
        super().__init__()
        self.front = nn.Sequential(nn.Conv1d(9, 8, 5, 2), nn.ReLU(), nn.Conv1d(8, 8, 5, 2), nn.ReLU())
        self.layer, self.head = nn.LSTM(8, 8), nn.Linear(8, 6)

    def forward(self, x):
        _, (last, _) = self.layer(self.front(x).permute(2, 0, 1))
        return self.head(functional.dropout(last[-1], 0.5, self.training))


def activity(whole):
    return Activity(), [(1, 9, 64 if whole else 32)]


class Streaming(nn.Module):
    """Causal convolutions of a stream: each call has one frame, buffers keep the last ones."""

    def __init__(self, depth, length):
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(6, 6, 3) for _ in range(depth))
        for number in range(depth):
            self.register_buffer(f"past{number}", torch.zeros(1, 6, 2))
        self.register_buffer("mean", torch.zeros(1, 6, length))
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        for number, layer in enumerate(self.layers):
            past = getattr(self, f"past{number}")
            joined = torch.cat([past, x], 2)
            past.copy_(joined[:, :, x.shape[2] :])
            x = x + functional.relu(layer(joined))
        self.mean.mul_(0.75).add_(x * 0.25)
        return self.head(self.mean.mean(2))


def streaming(whole):
    return Streaming(3 if whole else 1, 2), [(1, 6, 2)]


class Spotter(nn.Module):
    """A GRU cell whose state is a buffer, and a counter of frames."""

    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.GRUCell(5, 6), nn.Linear(6, 2)
        self.register_buffer("state", torch.zeros(1, 6))
        self.register_buffer("frames", torch.zeros(1))

    def forward(self, x):
        self.state.copy_(self.cell(x, self.state))
        self.frames += 1
        return self.head(self.state) / self.frames, self.frames.clone()


def spotter(whole):
    return Spotter(), [(1, 5)]


SIGNALS = {
    one.__name__: one
    for one in (
        *(ds_cnn, tc_resnet, gru_keywords, lstm_keywords, crnn, transformer, anomaly, ecg, activity, streaming),
        spotter,
    )
}

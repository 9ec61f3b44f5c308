# SPDX-License-Identifier: Apache-2.0
"""Whole networks of images, of torch.nn alone. Runs in the environment of PyTorch.

Each function returns a module and the shapes of its inputs. `whole`: with all blocks of the published network; without,
one block of each kind. The widths are small in both.
"""

import torch
from torch import nn
from torch.nn import functional


def unit(inner, outer, kernel=3, stride=1, groups=1, act=nn.ReLU6):
    """Return a convolution without bias, a normalisation and an activation."""
    layers = [nn.Conv2d(inner, outer, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(outer)]
    return nn.Sequential(*layers, act()) if act else nn.Sequential(*layers)


class Squeeze(nn.Module):
    """Squeeze and excitation with hard functions."""

    def __init__(self, depth, inner):
        super().__init__()
        self.down, self.up = nn.Conv2d(depth, inner, 1), nn.Conv2d(inner, depth, 1)

    def forward(self, x):
        y = functional.relu(self.down(functional.adaptive_avg_pool2d(x, 1)))
        return x * functional.hardsigmoid(self.up(y))


class Inverted(nn.Module):
    """The block of MobileNetV2 and V3, and of EfficientNet."""

    def __init__(self, inner, wide, outer, kernel, stride, act, squeeze=False):
        super().__init__()
        self.adds = stride == 1 and inner == outer
        parts = [unit(inner, wide, 1, act=act)] if wide != inner else []
        parts.append(unit(wide, wide, kernel, stride, wide, act))
        parts += [Squeeze(wide, max(wide // 4, 4))] if squeeze else []
        self.layers = nn.Sequential(*parts, unit(wide, outer, 1, act=None))

    def forward(self, x):
        return x + self.layers(x) if self.adds else self.layers(x)


class Classifier(nn.Module):
    def __init__(self, features, depth, classes, hidden=0, act=None):
        super().__init__()
        self.features, self.pool = features, nn.AdaptiveAvgPool2d(1)
        head = [nn.Linear(depth, hidden), act(), nn.Dropout(0.2)] if hidden else [nn.Dropout(0.2)]
        self.head = nn.Sequential(*head, nn.Linear(hidden or depth, classes))

    def forward(self, x):
        return self.head(torch.flatten(self.pool(self.features(x)), 1))


def mobilenet_v2(whole):
    rows = [(1, 4, 1, 1), (6, 6, 2, 2), (6, 8, 3, 2), (6, 12, 4, 2), (6, 16, 3, 1), (6, 20, 3, 2), (6, 32, 1, 1)]
    if not whole:
        rows = [(1, 4, 1, 1), (6, 6, 2, 2), (6, 8, 1, 2)]
    blocks, depth = [unit(3, 8, 3, 2)], 8
    for factor, outer, count, stride in rows:
        for number in range(count):
            blocks.append(Inverted(depth, depth * factor, outer, 3, 1 if number else stride, nn.ReLU6))
            depth = outer
    return Classifier(nn.Sequential(*blocks, unit(depth, 40, 1)), 40, 10), [(1, 3, 32, 32)]


def mobilenet_v3(whole):
    """The small one: kernel, expansion, outputs, squeeze, activation, stride."""
    relu, swish = nn.ReLU, nn.Hardswish
    rows = [(3, 8, 8, True, relu, 2), (3, 24, 12, False, relu, 2), (3, 32, 12, False, relu, 1)]
    rows += [(5, 36, 16, True, swish, 2), (5, 60, 16, True, swish, 1)]
    if whole:
        rows += [(5, 60, 16, True, swish, 1), (5, 40, 20, True, swish, 1), (5, 48, 20, True, swish, 1)]
        rows += [(5, 96, 24, True, swish, 2), (5, 144, 24, True, swish, 1), (5, 144, 24, True, swish, 1)]
    blocks, depth = [unit(3, 8, 3, 2, act=swish)], 8
    for kernel, wide, outer, squeeze, act, stride in rows:
        blocks.append(Inverted(depth, wide, outer, kernel, stride, act, squeeze))
        depth = outer
    blocks.append(unit(depth, 48, 1, act=swish))
    return Classifier(nn.Sequential(*blocks), 48, 10, 32, swish), [(1, 3, 48, 48)]


def efficientnet_lite(whole):
    """Without squeeze and with ReLU6: factor, outputs, count, kernel, stride."""
    rows = [(1, 4, 1, 3, 1), (6, 6, 2, 3, 2), (6, 8, 2, 5, 2)]
    if whole:
        rows += [(6, 12, 3, 3, 2), (6, 16, 3, 5, 1), (6, 20, 4, 5, 2), (6, 24, 1, 3, 1)]
    blocks, depth = [unit(3, 8, 3, 2)], 8
    for factor, outer, count, kernel, stride in rows:
        for number in range(count):
            blocks.append(Inverted(depth, depth * factor, outer, kernel, 1 if number else stride, nn.ReLU6))
            depth = outer
    return Classifier(nn.Sequential(*blocks, unit(depth, 32, 1)), 32, 10), [(1, 3, 40, 40)]


class Residual(nn.Module):
    def __init__(self, inner, outer, stride):
        super().__init__()
        self.one, self.two = unit(inner, outer, 3, stride, act=nn.ReLU), unit(outer, outer, act=None)
        self.side = unit(inner, outer, 1, stride, act=None) if stride > 1 or inner != outer else nn.Identity()

    def forward(self, x):
        return functional.relu(self.two(self.one(x)) + self.side(x))


def resnet18(whole):
    count, depth = 2 if whole else 1, 6
    blocks = [unit(3, 6, 3, act=nn.ReLU), nn.MaxPool2d(3, 2, 1)]
    for outer, stride in ((6, 1), (8, 2), (12, 2), (16, 2))[: 4 if whole else 2]:
        for number in range(count):
            blocks.append(Residual(depth, outer, 1 if number else stride))
            depth = outer
    return Classifier(nn.Sequential(*blocks), depth, 10), [(1, 3, 32, 32)]


class Fire(nn.Module):
    def __init__(self, inner, narrow, wide):
        super().__init__()
        self.narrow = nn.Conv2d(inner, narrow, 1)
        self.one, self.three = nn.Conv2d(narrow, wide, 1), nn.Conv2d(narrow, wide, 3, padding=1)

    def forward(self, x):
        y = functional.relu(self.narrow(x))
        return torch.cat([functional.relu(self.one(y)), functional.relu(self.three(y))], 1)


def squeezenet(whole):
    rows = [(4, 8), (4, 8), (6, 12), (6, 12)] if whole else [(4, 8)]
    blocks, depth = [nn.Conv2d(3, 8, 3, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, ceil_mode=True)], 8
    for narrow, wide in rows:
        blocks.append(Fire(depth, narrow, wide))
        depth = 2 * wide
    head = [nn.Dropout(0.5), nn.Conv2d(depth, 10, 1), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten()]
    return nn.Sequential(*blocks, *head), [(1, 3, 33, 33)]


class Shuffle(nn.Module):
    """The block of ShuffleNetV2 with stride 1."""

    def __init__(self, depth):
        super().__init__()
        half = depth // 2
        act, plain = nn.ReLU, None
        layers = [
            unit(half, half, 1, act=act),
            unit(half, half, 3, groups=half, act=plain),
            unit(half, half, 1, act=act),
        ]
        self.branch = nn.Sequential(*layers)

    def forward(self, x):
        one, two = x.chunk(2, dim=1)
        y = torch.cat((one, self.branch(two)), dim=1)
        n, depth, high, wide = y.shape
        return y.view(n, 2, depth // 2, high, wide).transpose(1, 2).contiguous().view(n, depth, high, wide)


def shufflenet(whole):
    blocks = [unit(3, 8, 3, 2, act=nn.ReLU), *(Shuffle(8) for _ in range(3 if whole else 1))]
    return Classifier(nn.Sequential(*blocks), 8, 10), [(1, 3, 24, 24)]


class UNet(nn.Module):
    def __init__(self, whole):
        super().__init__()
        depths = [4, 8, 12, 16] if whole else [4, 8]
        pairs = list(zip([1, *depths], depths, strict=False))
        self.down = nn.ModuleList(nn.Sequential(unit(a, b, act=nn.ReLU), unit(b, b, act=nn.ReLU)) for a, b in pairs)
        back = list(zip(depths[:0:-1], depths[-2::-1], strict=True))
        self.up = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, 2) for a, b in back)
        self.join = nn.ModuleList(unit(2 * b, b, act=nn.ReLU) for _, b in back)
        self.last = nn.Conv2d(depths[0], 2, 1)

    def forward(self, x):
        kept = []
        for number, layer in enumerate(self.down):
            x = layer(functional.max_pool2d(x, 2) if number else x)
            kept.append(x)
        for up, join, old in zip(self.up, self.join, kept[-2::-1], strict=True):
            x = join(torch.cat([up(x), old], 1))
        return torch.softmax(self.last(x), 1)


def unet(whole):
    return UNet(whole), [(1, 1, 32, 32) if whole else (1, 1, 16, 16)]


class Yolo(nn.Module):
    """A network with a head on two scales, whose boxes are decoded."""

    def __init__(self, classes=3, anchors=2):
        super().__init__()
        self.anchors, self.numbers = anchors, 5 + classes
        act = nn.SiLU
        self.one = nn.Sequential(unit(3, 8, 3, 2, act=act), unit(8, 12, 3, 2, act=act))
        self.two = unit(12, 16, 3, 2, act=act)
        self.spp = nn.ModuleList(nn.MaxPool2d(size, 1, size // 2) for size in (3, 5))
        self.neck, self.lateral = unit(48, 12, 1, act=act), unit(24, 12, 1, act=act)
        self.heads = nn.ModuleList(nn.Conv2d(12, anchors * self.numbers, 1) for _ in range(2))
        self.up = nn.Upsample(scale_factor=2, mode="nearest")
        self.register_buffer("sizes", torch.tensor([[10.0, 13.0], [33.0, 23.0]]).view(1, anchors, 1, 1, 2))

    def decode(self, y, stride):
        n, _, high, wide = y.shape
        y = y.view(n, self.anchors, self.numbers, high, wide).permute(0, 1, 3, 4, 2).contiguous().sigmoid()
        rows, columns = torch.meshgrid(torch.arange(high), torch.arange(wide), indexing="ij")
        grid = torch.stack((columns, rows), 2).view(1, 1, high, wide, 2).float()
        places, sizes, scores = y.split((2, 2, self.numbers - 4), 4)
        places = (places * 2 - 0.5 + grid) * stride
        return torch.cat((places, (sizes * 2) ** 2 * self.sizes, scores), 4).view(n, -1, self.numbers)

    def forward(self, x):
        one = self.one(x)
        two = self.two(one)
        deep = self.neck(torch.cat([two, *(pool(two) for pool in self.spp)], 1))
        wide = self.lateral(torch.cat([self.up(deep), one], 1))
        return torch.cat([self.decode(self.heads[0](wide), 4), self.decode(self.heads[1](deep), 8)], 1)


def yolo(whole):
    return Yolo(), [(1, 3, 48, 32) if whole else (1, 3, 32, 32)]


class Vision(nn.Module):
    """A vision transformer with a class token."""

    def __init__(self, depth):
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 4, 4)
        self.token, self.places = nn.Parameter(torch.randn(1, 1, 8)), nn.Parameter(torch.randn(1, 17, 8))
        layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, "gelu", batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 4)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.norm(self.layers(x))[:, 0])


def vision(whole):
    return Vision(3 if whole else 1), [(1, 3, 16, 16)]


def autoencoder(whole):
    """Of images: convolutions and transposed convolutions."""
    down = [nn.Conv2d(1, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 12, 3, 2, 1), nn.ReLU()]
    up = [nn.ConvTranspose2d(12, 8, 3, 2, 1, 1), nn.ReLU(), nn.ConvTranspose2d(8, 1, 3, 2, 1, 1), nn.Sigmoid()]
    return nn.Sequential(*down, *up), [(1, 1, 28, 28) if whole else (1, 1, 16, 16)]


def super_resolution(whole):
    layers = [nn.Conv2d(1, 8, 5, padding=2), nn.PReLU(8), nn.Conv2d(8, 8, 3, padding=1), nn.Tanh()]
    return nn.Sequential(*layers, nn.Conv2d(8, 4, 3, padding=1), nn.PixelShuffle(2)), [(1, 1, 12, 12)]


IMAGES = {
    one.__name__: one
    for one in (
        *(mobilenet_v2, mobilenet_v3, efficientnet_lite, resnet18, squeezenet, shufflenet, unet, yolo, vision),
        *(autoencoder, super_resolution),
    )
}

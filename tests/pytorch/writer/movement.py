# SPDX-License-Identifier: Apache-2.0
"""Operators that move elements, pools, resizing and reductions. Runs in the environment of PyTorch."""

import torch
from draws import coin, dimension, dimensions, integers, normal, operator, pick, shape_of
from torch import nn
from torch.nn import functional


def _moved(name, bound, function, overload="", least=1, draw=normal, quantised=False):
    """Register an operator by function(random, shape), which returns a function of one tensor."""

    @operator(name, bound, quantised, overload)
    def make(random):
        shape = shape_of(random, least)
        return function(random, shape), [draw(*shape)]


def _cat(random, count, axis):
    shape = shape_of(random)
    axis = axis(shape)
    shapes = [[n if i != axis % len(shape) else int(random.integers(1, 4)) for i, n in enumerate(shape)]
              for _ in range(count)]  # fmt: skip
    return axis, shapes


@operator("cat", "Concat", True)
def cat(random):
    axis, shapes = _cat(random, int(random.integers(1, 4)), lambda shape: dimension(random, shape))
    if coin(random, 0.3):
        constant = torch.ones(shapes[0])
        return (lambda *x: torch.cat([*x, constant], axis)), [normal(*one) for one in shapes]
    return (lambda *x: torch.cat(x, axis)), [normal(*one) for one in shapes]


@operator("stack", "Concat")
def stack(random):
    shape = shape_of(random, 1, 3)
    axis = int(random.integers(-len(shape) - 1, len(shape) + 1))
    return (lambda *x: torch.stack(x, axis)), [normal(*shape) for _ in range(int(random.integers(1, 4)))]


@operator("split", "Split")
def split(random):
    shape = shape_of(random)
    axis = dimension(random, shape)
    size = int(random.integers(1, shape[axis] + 1))
    return (lambda x: torch.split(x, size, axis)), [normal(*shape)]


@operator("split_with_sizes", "Split")
def split_with_sizes(random):
    shape = shape_of(random)
    axis = dimension(random, shape)
    shape[axis] += 2
    first = int(random.integers(1, shape[axis]))
    return (lambda x: torch.split(x, [first, shape[axis] - first], axis)), [normal(*shape)]


@operator("chunk", "Split")
def chunk(random):
    shape = shape_of(random)
    axis, count = dimension(random, shape), int(random.integers(1, 4))
    return (lambda x: torch.chunk(x, count, axis)), [normal(*shape)]


@operator("unbind", "Split")
def unbind(random):
    shape = shape_of(random, 2)
    axis = dimension(random, shape)
    return (lambda x: torch.unbind(x, axis)), [normal(*shape)]


@operator("slice", "Slice", overload="slice|alias")
def slices(random):
    shape = shape_of(random)
    picks = []
    for n in shape:
        begin, end = sorted(int(i) for i in random.integers(0, n + 1, 2))
        begin, end = (begin, end) if end > begin else (0, n)
        begin = begin - n if begin and coin(random, 0.3) else begin
        picks.append(slice(begin, None if coin(random, 0.3) and end == n else end, pick(random, 1, 1, 2)))
    chosen = tuple(picks) if coin(random) else (..., picks[-1])
    return (lambda x: x[chosen]), [normal(*shape)]


def _select(random, shape):
    axis = dimension(random, shape)
    index = int(random.integers(-shape[axis], shape[axis]))
    return lambda x: torch.select(x, axis, index)


_moved("select", "Gather", _select, least=2)


@operator("index_select", "Gather")
def index_select(random):
    shape = shape_of(random)
    axis = dimension(random, shape)
    count = int(random.integers(1, 5))
    if coin(random):
        return (lambda x, i: torch.index_select(x, axis, i)), [normal(*shape), integers(0, shape[axis], count)]
    index = torch.from_numpy(random.integers(0, shape[axis], count))
    return (lambda x: torch.index_select(x, axis, index)), [normal(*shape)]


@operator("gather", "GatherElements")
def gather(random):
    shape = shape_of(random)
    axis = dimension(random, shape)
    index = torch.from_numpy(random.integers(0, shape[axis], shape))
    return (lambda x: torch.gather(x, axis, index)), [normal(*shape)]


@operator("index", "Gather")
def index(random):
    shape = shape_of(random)
    chosen = torch.from_numpy(random.integers(0, shape[0], int(random.integers(1, 4))))
    return (lambda x: x[chosen]), [normal(*shape)]


def _permute(random, shape):
    order = [int(n) - (len(shape) if coin(random, 0.2) else 0) for n in random.permutation(len(shape))]
    return lambda x: x.permute(order)


def _transpose(random, shape):
    one, two = dimension(random, shape), dimension(random, shape)
    return lambda x: x.transpose(one, two)


def _shaped(random, shape):
    count = 1
    for n in shape:
        count *= n
    divisors = [n for n in range(1, count + 1) if count % n == 0]
    first = int(random.choice(divisors))
    return pick(random, [-1], [first, -1], [first, count // first], [1, -1, first])


def _view(random, shape):
    wanted = _shaped(random, shape)
    return lambda x: x.view(wanted)


def _reshape(random, shape):
    """After a transposition the memory is not in the order of the elements."""
    wanted = _shaped(random, shape)
    return lambda x: x.transpose(0, -1).reshape(wanted)


def _flatten(random, shape):
    begin, end = sorted(random.integers(0, len(shape), 2).tolist())
    return lambda x: torch.flatten(x, begin, end)


def _unflatten(random, shape):
    axis = dimension(random, shape)
    return lambda x: x.unflatten(axis, (shape[axis], 1))


def _unsqueeze(random, shape):
    axis = int(random.integers(-len(shape) - 1, len(shape) + 1))
    return lambda x: x.unsqueeze(axis)


def _expand(random, shape):
    more = [int(n) for n in random.integers(1, 4, int(random.integers(0, 2)))]
    axis = int(random.integers(0, len(shape)))
    wanted = [*more, *(3 if i == axis else -1 for i in range(len(shape)))]
    return lambda x: x.narrow(axis, 0, 1).expand(wanted)


def _repeat(random, shape):
    times = random.integers(1, 3, len(shape) + int(random.integers(0, 2))).tolist()
    return lambda x: x.repeat(times)


def _flip(random, shape):
    axes = dimensions(random, shape)
    return lambda x: torch.flip(x, axes)


def _roll(random, shape):
    axis, shift = dimension(random, shape), int(random.integers(-3, 4))
    return lambda x: torch.roll(x, shift, axis)


def _triangle(function):
    def make(random, shape):
        diagonal = int(random.integers(-2, 3))
        return lambda x: function(x, diagonal)

    return make


_moved("permute", "Transpose", _permute)
_moved("transpose", "Transpose", _transpose)
_moved("view", "Squeeze", _view)
_moved("reshape", "Transpose", _reshape)
_moved("flatten", "Squeeze", _flatten, least=2)
_moved("unflatten", "Squeeze", _unflatten)
_moved("unsqueeze", "Squeeze", _unsqueeze)
_moved("expand", "Expand", _expand)
_moved("repeat", "Tile", _repeat)
_moved("flip", "Slice", _flip)
_moved("roll", "Concat", _roll)
_moved("tril", "Trilu", _triangle(torch.tril), least=2)
_moved("triu", "Trilu", _triangle(torch.triu), least=2)
_moved("clone", "Squeeze", lambda random, shape: lambda x: x.transpose(0, -1).clone() + 0)


@operator("squeeze", "Squeeze")
def squeeze(random):
    shape = [n if coin(random) else 1 for n in shape_of(random, 2)]
    axis = dimension(random, shape)
    function = pick(random, lambda x: x.squeeze(), lambda x: x.squeeze(axis), lambda x: x.squeeze((0, -1)))
    return function, [normal(*shape)]


@operator("pad", "Pad", True)
def pad(random):
    mode = pick(random, "constant", "constant", "reflect", "replicate", "circular")
    count = int(random.integers(1, 3))
    shape = [1, int(random.integers(1, 4)), *random.integers(4, 7, count).tolist()]
    low = -1 if mode == "constant" else 0
    widths = random.integers(low, 3, 2 * count).tolist()
    options = {"value": pick(random, 0.0, 0.0, -1.5)} if mode == "constant" else {}
    return (lambda x: functional.pad(x, widths, mode=mode, **options)), [normal(*shape)]


def _resized(name, mode, bound):
    @operator(name, bound)
    def make(random):
        high, wide = random.integers(2, 6, 2).tolist()
        options = {"mode": mode}
        if mode != "nearest":
            options["align_corners"] = coin(random)
        if coin(random):
            options["scale_factor"] = float(random.choice([2.0, 3.0, 1.5]))
        else:
            options["size"] = random.integers(2, 12, 2).tolist()
        shape = (1, int(random.integers(1, 4)), high, wide)
        return (lambda x: functional.interpolate(x, **options)), [normal(*shape)]


_resized("upsample_nearest2d", "nearest", "Expand")
_resized("upsample_bilinear2d", "bilinear", "Resize")


@operator("pixel_shuffle", "DepthToSpace")
def pixel_shuffle(random):
    factor = int(random.integers(1, 4))
    shape = (1, factor**2 * int(random.integers(1, 4)), *random.integers(1, 5, 2))
    return (lambda x: functional.pixel_shuffle(x, factor)), [normal(*shape)]


@operator("pixel_unshuffle", "DepthToSpace")
def pixel_unshuffle(random):
    factor = int(random.integers(1, 4))
    shape = (1, int(random.integers(1, 4)), *(factor * n for n in random.integers(1, 4, 2)))
    return (lambda x: functional.pixel_unshuffle(x, factor)), [normal(*shape)]


def _pool(name, kind, bound, spatial, quantised):
    @operator(name, bound, quantised)
    def make(random):
        options = {"kernel_size": random.integers(2, 4, spatial).tolist(), "ceil_mode": coin(random, 0.3)}
        options["stride"] = random.integers(1, 4, spatial).tolist()
        options["padding"] = [int(random.integers(0, n // 2 + 1)) for n in options["kernel_size"]]
        if "max" in name:
            options["dilation"] = random.integers(1, 3, spatial).tolist()
        else:
            options["count_include_pad"] = coin(random)
        shape = (int(random.integers(1, 3)), int(random.integers(1, 5)), *random.integers(6, 11, spatial))
        return kind(**options), [normal(*shape)]


_pool("max_pool1d", nn.MaxPool1d, "MaxPool", 1, False)
_pool("max_pool2d", nn.MaxPool2d, "MaxPool", 2, True)
_pool("avg_pool1d", nn.AvgPool1d, "AveragePool", 1, False)
_pool("avg_pool2d", nn.AvgPool2d, "AveragePool", 2, True)


def _adaptive(name, bound, spatial, quantised=False):
    function = getattr(functional, name)

    @operator(name, bound, quantised)
    def make(random):
        sizes = random.integers(1, 9, spatial)
        wanted = [int(random.integers(1, n + 1)) if coin(random) else 1 for n in sizes]
        shape = (1, int(random.integers(1, 5)), *sizes)
        return (lambda x: function(x, wanted)), [normal(*shape)]


_adaptive("adaptive_avg_pool1d", "AveragePool", 1)
_adaptive("adaptive_avg_pool2d", "AveragePool", 2, True)
_adaptive("adaptive_max_pool2d", "MaxPool", 2)


def _reduced(name, bound, function, least=1, draw=normal, overload="", quantised=False):
    def make(random, shape):
        axes, keep = dimensions(random, shape), coin(random)
        return lambda x: function(x, axes, keep)

    _moved(name, bound, make, overload, least, draw, quantised)


def _at_one(name, bound, function):
    def make(random, shape):
        axis, keep = dimension(random, shape), coin(random)
        return lambda x: function(x, axis, keep)

    _moved(name, bound, make)


_reduced("mean", "ReduceMean", torch.mean, quantised=True)
_reduced("sum", "ReduceSum", torch.sum)
_reduced("amax", "ReduceMax", torch.amax)
_reduced("amin", "ReduceMin", torch.amin)
_reduced("logsumexp", "ReduceLogSumExp", torch.logsumexp)
_reduced("linalg_vector_norm", "ReduceL2", lambda x, axes, keep: torch.linalg.vector_norm(x, 2, axes, keep))
_at_one("max", "ReduceMax", lambda x, axis, keep: torch.max(x, axis, keep))
_at_one("min", "ReduceMin", lambda x, axis, keep: torch.min(x, axis, keep)[0])
_at_one("argmax", "ArgMax", torch.argmax)
_at_one("argmin", "ArgMax", torch.argmin)
_at_one("prod", "ReduceProd", lambda x, axis, keep: torch.prod(x, axis, keepdim=keep))


@operator("var", "ReduceSumSquare")
def variance(random):
    shape = [n + 1 for n in shape_of(random)]
    axes, keep, correction = dimensions(random, shape), coin(random), int(random.integers(0, 2))
    return (lambda x: torch.var(x, axes, correction=correction, keepdim=keep)), [normal(*shape)]


@operator("std", "ReduceSumSquare")
def deviation(random):
    shape = [n + 1 for n in shape_of(random)]
    axes, keep = dimensions(random, shape), coin(random)
    return (lambda x: torch.std(x, axes, correction=1, keepdim=keep)), [normal(*shape)]


@operator("cumsum", "ReduceSum")
def cumsum(random):
    shape = shape_of(random)
    axis = dimension(random, shape)
    return (lambda x: torch.cumsum(x, axis)), [normal(*shape)]


@operator("topk", "TopK")
def topk(random):
    shape = shape_of(random)
    axis = dimension(random, shape)
    count, largest = int(random.integers(1, shape[axis] + 1)), coin(random, 0.7)
    return (lambda x: torch.topk(x, count, axis, largest)), [normal(*shape)]

# SPDX-License-Identifier: Apache-2.0
"""TFLite's reference kernels for int8 as tensor expressions."""

from __future__ import annotations

from typing import Any

from opwest.records import dataclass


@dataclass(frozen=True)
class Requantize:
    """From an int32 sum to int8: times a fixed-point number, rounded, plus the zero point."""

    zero: int
    fixed: tuple[int, int] | None
    """Multiplier and shift; None: arrays of them, one of each per channel."""
    once: bool
    """Whether there is one rounding, halves up, instead of gemmlowp's two."""

    def __call__(self, total: Any, multiplier: Any, shift: Any) -> Any:
        """Return one int8. gemmlowp rounds twice: in a doubling high multiplication, then in a rounding shift."""
        from tvm import tirx

        def const(number: int, dtype: str = "int32") -> Any:
            return tirx.const(number, dtype)

        # Named values: TVM would widen both operands of a sum before the addition, and duplicate shared expressions.
        sum_ = tirx.Var("sum", "int32")
        wide = sum_.astype("int64") * multiplier.astype("int64")
        if self.once:
            places = shift.astype("int64") + const(31, "int64")
            half = const(1, "int64") << (places - const(1, "int64"))
            value = ((wide + half) >> places).astype("int32")
            low = self._limited(value)
        else:
            high = tirx.Var("high", "int32")
            half = (const(1) << shift) >> const(1)
            away = (high >> const(31)) * tirx.min(shift, const(1))
            doubled = ((wide + const(1 << 30, "int64")) >> const(31, "int64")).astype("int32")
            low = tirx.Let(high, doubled, self._limited((high + half + away) >> shift))
        return tirx.Let(sum_, total, low)

    def _limited(self, value: Any) -> Any:
        from tvm import tirx

        value = value + tirx.const(self.zero, "int32")
        low, top = tirx.const(-128, "int32"), tirx.const(127, "int32")
        return tirx.max(tirx.min(value, top), low).astype("int8")

    def tensor(self, total: Any, bias: Any, scales: tuple[Any, ...]) -> Any:
        """Return the whole result; channels are the last dimension."""
        from tvm import te, tirx

        def one(*index: Any) -> Any:
            if self.fixed is not None:
                multiplier, shift = (tirx.const(n, "int32") for n in self.fixed)
            else:
                multiplier, shift = (array[index[-1]] for array in scales)
            return self(total[index] + bias[index[-1]], multiplier, shift)

        return te.compute(total.shape, one, name="requantize")


def _shifted(value: Any, zero: int) -> Any:
    from tvm import tirx

    return value.astype("int32") - tirx.const(zero, "int32")


@dataclass(frozen=True)
class Dense:
    """A fully connected layer: int8 [..., k] times int8 [k, m]. The bias takes the data's zero point into account."""

    requantize: Requantize

    def __call__(self, data: Any, weights: Any, bias: Any, *scales: Any) -> Any:
        """Return the layer."""
        from tvm import te

        k = te.reduce_axis((0, weights.shape[0]), "k")
        total = te.compute(
            (*data.shape[:-1], weights.shape[1]),
            lambda *i: te.sum(data[(*i[:-1], k)].astype("int32") * weights[k, i[-1]].astype("int32"), axis=k),
            name="total",
        )
        return self.requantize.tensor(total, bias, scales)


@dataclass(frozen=True)
class Convolution:
    """A convolution of NHWC by HWIO, or a depthwise one if `multiplier` is not 0."""

    zero: int
    """The zero point to subtract from the data; 0 if the bias includes it, which requires no padding."""
    requantize: Requantize
    result: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    multiplier: int

    def __call__(self, data: Any, weights: Any, bias: Any, *scales: Any) -> Any:
        """Return the layer."""
        from tvm import te

        padded = _padded(data, self.padding, lambda value: _shifted(value, self.zero))
        ry, rx = (te.reduce_axis((0, weights.shape[i]), name) for i, name in enumerate(("ry", "rx")))
        (sy, sx), (dy, dx) = self.strides, self.dilation
        if self.multiplier:
            total = te.compute(
                self.result,
                lambda n, y, x, c: te.sum(
                    padded[n, y * sy + ry * dy, x * sx + rx * dx, c // self.multiplier]
                    * weights[ry, rx, c].astype("int32"),
                    axis=[ry, rx],
                ),
                name="total",
            )
        else:
            rc = te.reduce_axis((0, weights.shape[2]), "rc")
            total = te.compute(
                self.result,
                lambda n, y, x, c: te.sum(
                    padded[n, y * sy + ry * dy, x * sx + rx * dx, rc] * weights[ry, rx, rc, c].astype("int32"),
                    axis=[ry, rx, rc],
                ),
                name="total",
            )
        return self.requantize.tensor(total, bias, scales)


def _padded(data: Any, padding: tuple[int, ...], value: Any) -> Any:
    """Return int32 with a border of zeros."""
    from tvm import te, tirx

    n, height, width, channels = (int(d) for d in data.shape)
    top, left, bottom, right = padding
    if not any(padding):
        return te.compute((n, height, width, channels), lambda *i: value(data[i]), name="widened")

    def one(b: Any, y: Any, x: Any, c: Any) -> Any:
        checks = [*([y >= top] if top else []), *([y < height + top] if bottom else [])]
        checks += [*([x >= left] if left else []), *([x < width + left] if right else [])]
        inside = value(data[b, y - top, x - left, c])
        return tirx.if_then_else(tirx.all(*checks), inside, tirx.const(0, "int32"))

    return te.compute((n, height + top + bottom, width + left + right, channels), one, name="padded")


@dataclass(frozen=True)
class AveragePool:
    """The mean of int8 as int32, without padding, rounded to nearest with halves away from zero."""

    data: tuple[int, ...]
    size: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[int, ...]

    def __call__(self, data: Any) -> Any:
        """Return the layer."""
        from tvm import te, tirx

        n, height, width, channels = self.data
        top, left, bottom, right = self.padding
        (kh, kw), (sy, sx) = self.size, self.strides
        shape = (n, (height + top + bottom - kh) // sy + 1, (width + left + right - kw) // sx + 1, channels)
        padded = _padded(data, self.padding, lambda value: value.astype("int32"))
        ry, rx = te.reduce_axis((0, kh), "ry"), te.reduce_axis((0, kw), "rx")
        total = te.compute(
            shape, lambda b, y, x, c: te.sum(padded[b, y * sy + ry, x * sx + rx, c], axis=[ry, rx]), name="total"
        )

        def count(position: Any, stride: int, before: int, after: int, length: int, window: int) -> Any:
            if not before and not after:
                return tirx.const(window, "int32")
            start = position * stride - before
            whole = tirx.min(start + window, length) - tirx.max(start, 0)
            return whole.astype("int32")

        def mean(b: Any, y: Any, x: Any, c: Any) -> Any:
            number = count(y, sy, top, bottom, height, kh) * count(x, sx, left, right, width, kw)
            value, half = total[b, y, x, c], tirx.truncdiv(number, 2)
            away = tirx.Select(value >= 0, value + half, value - half)
            return tirx.truncdiv(away, number)

        return te.compute(shape, mean, name="mean")


@dataclass(frozen=True)
class Mean:
    """The mean of int8 over some dimensions, as int8 of another scale; the scaling includes the division."""

    data: tuple[int, ...]
    axes: tuple[int, ...]
    keeps: bool
    """Whether the dimensions are kept, with one element."""
    zero: int
    requantize: Requantize

    def __call__(self, data: Any) -> Any:
        """Return the layer."""
        from tvm import te, tirx

        reduced = {a: te.reduce_axis((0, self.data[a]), f"r{a}") for a in self.axes}
        shape = [1 if a in reduced else n for a, n in enumerate(self.data) if self.keeps or a not in reduced]

        def total(*index: Any) -> Any:
            rest = iter(index)
            places = []
            for axis in range(len(self.data)):
                place = next(rest) if self.keeps or axis not in reduced else None
                places.append(reduced.get(axis, place))
            return te.sum(_shifted(data[tuple(places)], self.zero), axis=list(reduced.values()))

        sums = te.compute(shape, total, name="total")
        assert self.requantize.fixed is not None
        multiplier, shift = (tirx.const(n, "int32") for n in self.requantize.fixed)
        return te.compute(shape, lambda *i: self.requantize(sums[i], multiplier, shift), name="requantize")

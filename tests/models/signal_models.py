# SPDX-License-Identifier: Apache-2.0
"""Random files of tflite-micro's signal operators, and files that compose them.

All draws are bytes of SHAKE-128: recorded results do not depend on the version of a generator of random numbers.
"""

import hashlib

import numpy as np
from models.made import Model, flex

RUNS = 5
"""The calls of one configuration, between which states last."""


class Drawn:
    """A sequence of draws."""

    def __init__(self, *words):
        self._words, self._count = words, 0

    def bytes(self, count):
        self._count += 1
        return hashlib.shake_128(repr((*self._words, self._count)).encode()).digest(count)

    def integer(self, low, high):
        """Return a number from low to high."""
        return low + int.from_bytes(self.bytes(8), "little") % (high - low + 1)

    def choice(self, items):
        return items[self.integer(0, len(items) - 1)]

    def array(self, dtype, shape, small=True):
        """Return elements of the whole range, or of a part of it, or the ends of the range and 0."""
        count = int(np.prod(shape, dtype=int))
        if dtype == "float32":
            words = np.frombuffer(self.bytes(4 * count), np.int32).astype(np.float32)
            return np.ldexp(words, np.int32(self.integer(-40, -25))).reshape(shape)
        kind = np.dtype(dtype)
        found = np.frombuffer(self.bytes(kind.itemsize * count), kind)
        way = self.integer(0, 5) if small else 0
        if way == 1:
            ends = np.asarray([np.iinfo(kind).min, 0, np.iinfo(kind).max], kind)
            found = ends[(found % 3).astype(int)]
        elif way == 2:
            found = np.zeros(count, kind)
        elif way > 3:
            places = np.frombuffer(self.bytes(count), np.uint8) % (8 * kind.itemsize)
            one = way == 4 and self.integer(0, 8 * kind.itemsize - 1)
            found = found >> (np.full(count, one) if way == 4 else places).astype(kind)
        return found.astype(kind).reshape(shape)

    def rows(self, length):
        return self.choice([(length,), (1, length), (3, length), (2, 2, length)])


def _ending(model, kind, inputs, *results, **options):
    """Return a model whose last operator has results of these dtypes and shapes, and custom options."""
    outputs = [model._tensor(dtype, tuple(shape)) for dtype, shape in results]
    model.operator(kind, inputs, *outputs, custom=flex(**options))
    return model.output(*outputs)


def _of_one(kind, data, *results, constants=(), **options):
    model = Model()
    given = [model.input(*data), *map(model.constant, constants)]
    return _ending(model, kind, given, *results, **options)


def window(d):
    length = d.integer(1, 40)
    shape = d.rows(length * d.choice([1, 1, 2]))
    factors = d.array("int16", (length,))
    return _of_one(
        "SignalWindow", ("int16", shape), ("int16", shape), constants=[factors], shift=d.choice([12, d.integer(0, 31)])
    )


def auto_scale(d):
    length = d.integer(1, 60)
    return _of_one("SignalFftAutoScale", ("int16", (length,)), ("int16", (length,)), ("int32", ()))


LENGTHS = sorted(
    {2 * 2**a * 3**b * 5**c for a in range(10) for b in range(4) for c in range(4)} - {2}, key=lambda n: (n > 600, n)
)
LENGTHS = [n for n in LENGTHS if n <= 600]
_TYPES = {"int16": 7, "int32": 2, "float32": 0}


def rfft(d, dtype):
    length = d.choice(LENGTHS)
    shape = d.rows(d.choice([length, d.integer(1, length)]))
    return _of_one("SignalRfft", (dtype, shape), (dtype, (*shape[:-1], length + 2)), T=_TYPES[dtype], fft_length=length)


def irfft(d, dtype):
    length = d.choice(LENGTHS)
    shape = d.rows(length + 2)
    return _of_one("SignalIrfft", (dtype, shape), (dtype, (*shape[:-1], length)), T=_TYPES[dtype], fft_length=length)


def energy(d):
    pairs = d.integer(1, 80)
    end = d.integer(0, pairs)
    start = d.integer(0, end)
    return _of_one("SignalEnergy", ("int16", (2 * pairs,)), ("uint32", (pairs,)), end_index=end, start_index=start)


def filter_bank(d):
    size, channels, count = d.integer(1, 60), d.integer(1, 12), d.integer(1, 60)
    weights = d.array("int16", (2, count), small=False)
    if d.integer(0, 2):
        weights = weights & 4095  # as those of real filters: not negative
    tables = []
    for _ in range(channels + 1):
        width = d.integer(0, min(size, count))
        tables.append((d.integer(0, size - width), d.integer(0, count - width), width))
    tables = np.asarray(tables, np.int16).T
    constants = [*weights, *tables]
    return _of_one(
        "SignalFilterBank",
        ("uint32", (size,)),
        ("uint64", (channels,)),
        constants=constants,
        num_channels=channels,
    )


def square_root(d):
    model, channels = Model(), d.integer(1, 40)
    data = model.input("uint64", (channels,))
    bits = model.input("int32", ())
    return _ending(model, "SignalFilterBankSquareRoot", [data, bits], ("uint32", (channels,)))


def log(d):
    channels = d.integer(1, 40)
    scale = d.choice([64, d.integer(0, 70000), d.integer(-(1 << 31), (1 << 31) - 1)])
    options = {"input_correction_bits": d.choice([3, d.integer(0, 31)]), "output_scale": scale}
    return _of_one("SignalFilterBankLog", ("uint32", (channels,)), ("int16", (channels,)), **options)


def spectral_subtraction(d):
    channels = d.integer(1, 20)
    bits = d.choice([14, d.integer(0, 31), d.integer(0, 63)])
    one = min(1 << bits, 1 << 30)
    smoothing, alternate = d.integer(0, one), d.integer(0, one)
    options = {
        "alternate_one_minus_smoothing": one - alternate,
        "alternate_smoothing": d.choice([alternate, smoothing]),
        "clamping": bool(d.integer(0, 1)),
        "min_signal_remaining": d.integer(0, one),
        "num_channels": channels,
        "one_minus_smoothing": one - smoothing,
        "smoothing": smoothing,
        "smoothing_bits": d.choice([10, d.integer(0, 31)]),
        "spectral_subtraction_bits": bits,
    }
    results = [("uint32", (channels,))] * 2
    return _of_one("SignalFilterBankSpectralSubtraction", ("uint32", (channels,)), *results, **options)


def pcan(d):
    model, channels = Model(), d.integer(1, 30)
    data, noise = (model.input("uint32", (channels,)) for _ in range(2))
    gains = model.constant(d.array("int16", (d.choice([125, 130]),), small=False))
    shift = d.choice([6, d.integer(0, 63)])
    return _ending(model, "SignalPCAN", [data, noise, gains], ("uint32", (channels,)), snr_shift=shift)


def framer(d):
    step = d.integer(1, 12)
    size = d.choice([step, 2 * step, d.integer(1, 40)])
    prefill = size >= step and bool(d.integer(0, 1))
    shape = d.rows(step * d.choice([1, 1, 2, 3]))
    frames = (*shape[:-1], shape[-1] // step, size)
    options = {"frame_size": size, "frame_step": step, "prefill": prefill}
    return _of_one("SignalFramer", ("int16", shape), ("int16", frames), ("bool", ()), **options)


def overlap_add(d, dtype):
    size = d.integer(1, 20)
    step = d.integer(1, size)
    shape = d.choice([(1, size), (3, size), (2, 2, size), (1, 1, size)])
    result = (*shape[:-2], shape[-2] * step)
    return _of_one("SignalOverlapAdd", (dtype, shape), (dtype, result), T=_TYPES[dtype], frame_step=step)


def stacker(d):
    channels, left, right = d.integer(1, 8), d.integer(0, 3), d.integer(0, 3)
    options = {
        "num_channels": channels,
        "stacker_left_context": left,
        "stacker_right_context": right,
        "stacker_step": d.integer(1, left + right + 1),
    }
    result = (channels * (left + right + 1),)
    return _of_one("SignalStacker", ("int16", (channels,)), ("int16", result), ("bool", ()), **options)


def delay(d):
    shape = d.rows(d.integer(1, 12))
    return _of_one("SignalDelay", ("int16", shape), ("int16", shape), delay_length=d.integer(0, 30))


FAMILIES = {
    "SignalWindow": (window,),
    "SignalFftAutoScale": (auto_scale,),
    **{f"SignalRfft {dtype}": (rfft, dtype) for dtype in _TYPES},
    **{f"SignalIrfft {dtype}": (irfft, dtype) for dtype in _TYPES},
    "SignalEnergy": (energy,),
    "SignalFilterBank": (filter_bank,),
    "SignalFilterBankSquareRoot": (square_root,),
    "SignalFilterBankLog": (log,),
    "SignalFilterBankSpectralSubtraction": (spectral_subtraction,),
    "SignalPCAN": (pcan,),
    "SignalFramer": (framer,),
    **{f"SignalOverlapAdd {dtype}": (overlap_add, dtype) for dtype in ("int16", "float32")},
    "SignalStacker": (stacker,),
    "SignalDelay": (delay,),
}
"""The builder and its words."""


def configuration(name, number):
    """Return a file of a family, and its draws."""
    make, *words = FAMILIES[name]
    d = Drawn(name, number)
    return make(d, *words), d


def inputs_of(graph, d, runs=RUNS):
    """Return the inputs of a sequence of calls."""
    # Counts of bits are those that C defines.
    return [
        [
            np.asarray(d.integer(0, 31), np.int32) if tensor.shape == () else d.array(tensor.dtype, tensor.shape)
            for tensor in graph.inputs
        ]
        for _ in range(runs)
    ]


def digest(results):
    """Return a digest of the results of a sequence of calls, bit for bit."""
    found = hashlib.sha256()
    for arrays in results:
        for array in arrays:
            found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:12]

# SPDX-License-Identifier: Apache-2.0
"""Files that compose signal operators with others: from sound to features and to scores, and to sound again."""

import itertools

import numpy as np
from models.made import Model, flex
from models.signal_models import Drawn

RATE, STEP, FRAME, FFT, CHANNELS = 16000, 320, 480, 512, 20
"""Samples of a second, of a step, of a frame and of an FFT; channels of the filter bank."""


def add(model, kind, inputs, *results, **options):
    """Add a custom operator with results of these dtypes and shapes."""
    outputs = [model._tensor(dtype, tuple(shape)) for dtype, shape in results]
    model.operator(kind, inputs, *outputs, custom=flex(**options))
    return outputs[0] if len(outputs) == 1 else outputs


def plain(model, kind, inputs, dtype, shape, *quantisation, **options):
    """Add an operator of TFLite."""
    result = model._tensor(dtype, tuple(shape), *quantisation)
    model.operator(kind, inputs, result, **options)
    return result


def reshape(model, data, shape, dtype="int16"):
    wanted = model.constant(np.asarray(shape, np.int32))
    return plain(model, "RESHAPE", [data, wanted], dtype, shape, new_shape=list(shape))


def hann(model, length, bits=12):
    phases = np.arange(length) * (2 * np.pi / length)
    return model.constant(np.round((0.5 - 0.5 * np.cos(phases)) * (1 << bits)).astype(np.int16))


def filters(model):
    """Return the constants of triangular filters between frequencies with equal steps of their logarithms."""
    edges = np.round(np.geomspace(6, 230, CHANNELS + 2)).astype(int)
    starts, firsts, widths, weights, unweights = [], [], [], [], []
    for low, high in itertools.pairwise(edges):
        starts.append(low)
        firsts.append(len(weights))
        widths.append(high - low)
        falling = [round(4096 * (high - k) / (high - low)) for k in range(low, high)]
        unweights += falling
        weights += [4096 - weight for weight in falling]
    tables = (weights, unweights, starts, firsts, widths)
    return [model.constant(np.asarray(table, np.int16)) for table in tables]


def gains(model, strength=0.95, offset=80.0, bits=21):
    """Return the table of gains of 1 / (noise + offset)**strength, in the form of its polynomials."""

    def gain(noise):
        return min(round((1 << bits) * (noise / 1024 + offset) ** -strength), 32767)

    table = [gain(noise) for noise in range(2)] + [0] * 123
    table[2] = gain(2)
    for interval in range(2, 33):
        first, middle, last = (gain(2.0 ** (interval - 1) * (1 + part)) for part in (0, 0.5, 1))
        table[4 * interval - 6 : 4 * interval - 3] = first, 4 * middle - 3 * first - last, first + last - 2 * middle
    return model.constant(np.asarray(table[:125], np.int16))


def features(model, frame):
    """Return the int16 features of a frame, as tflite-micro's examples make them, and those of the noise."""
    windowed = add(model, "SignalWindow", [frame, hann(model, FRAME)], ("int16", (1, FRAME)), shift=12)
    row = reshape(model, windowed, [FRAME])
    scaled, bits = add(model, "SignalFftAutoScale", [row], ("int16", (FRAME,)), ("int32", ()))
    spectrum = add(model, "SignalRfft", [scaled], ("int16", (FFT + 2,)), T=7, fft_length=FFT)
    energy = add(model, "SignalEnergy", [spectrum], ("uint32", (FFT // 2 + 1,)), end_index=241, start_index=5)
    banks = [energy, *filters(model)]
    sums = add(model, "SignalFilterBank", banks, ("uint64", (CHANNELS,)), num_channels=CHANNELS)
    roots = add(model, "SignalFilterBankSquareRoot", [sums, bits], ("uint32", (CHANNELS,)))
    numbers = {
        "alternate_one_minus_smoothing": 15401,
        "alternate_smoothing": 983,
        "clamping": False,
        "min_signal_remaining": 819,
        "num_channels": CHANNELS,
        "one_minus_smoothing": 15975,
        "smoothing": 409,
        "smoothing_bits": 10,
        "spectral_subtraction_bits": 14,
    }
    clean, noise = add(model, "SignalFilterBankSpectralSubtraction", [roots], *[("uint32", (CHANNELS,))] * 2, **numbers)
    even = add(model, "SignalPCAN", [clean, noise, gains(model)], ("uint32", (CHANNELS,)), snr_shift=6)
    return [
        add(
            model,
            "SignalFilterBankLog",
            [data],
            ("int16", (CHANNELS,)),
            input_correction_bits=3,
            output_scale=64,
        )
        for data in (even, noise)
    ]


def scores():
    """Sound to scores: frames, features of two kinds, a stack of them, a classifier of int8."""
    model, d = Model(), Drawn("scores")
    sound = model.input("int16", (1, STEP), name="sound")
    frame, is_frame = add(
        model, "SignalFramer", [sound], ("int16", (1, 1, FRAME)), ("bool", ()), frame_size=FRAME, frame_step=STEP,
        prefill=True,
    )  # fmt: skip
    logs = features(model, reshape(model, frame, [1, FRAME]))
    both = plain(model, "CONCATENATION", logs, "int16", (2 * CHANNELS,), axis=0)
    size = 2 * CHANNELS * 3
    stack, is_stack = add(
        model, "SignalStacker", [both], ("int16", (size,)), ("bool", ()), num_channels=2 * CHANNELS,
        stacker_left_context=1, stacker_right_context=1, stacker_step=1,
    )  # fmt: skip
    wide = plain(model, "CAST", [stack], "int32", (size,), in_data_type="int16", out_data_type="int32")
    shifted = plain(model, "ADD", [wide, model.constant(np.int32(-300))], "int32", (size,))
    low = plain(model, "MAXIMUM", [shifted, model.constant(np.int32(-128))], "int32", (size,))
    high = plain(model, "MINIMUM", [low, model.constant(np.int32(127))], "int32", (size,))
    row = reshape(model, high, [1, size], "int32")
    # A file cannot give a scale to numbers without one but by an operator that has both.
    data = plain(model, "CAST", [row], "int8", (1, size), 2.0**-5, 0, in_data_type="int32", out_data_type="int8")
    weights = model.constant(d.array("int8", (4, size), small=False), 2.0**-9)
    bias = model.constant(np.asarray([500, -800, 0, 90], np.int32), 2.0**-14)
    found = plain(model, "FULLY_CONNECTED", [data, weights, bias], "int8", (1, 4), 2.0**-2, 3)
    found.name, is_frame.name, is_stack.name = "scores", "is_frame", "is_stack"
    return model.output(found, is_frame, is_stack)


def denoised(dtype):
    """Sound to sound: frames, their spectra, samples of these, overlapped; and the sound of that time."""
    model = Model()
    size, step = 96, 32
    sound = model.input("int16", (2, 2 * step), name="sound")
    frames, is_valid = add(
        model, "SignalFramer", [sound], ("int16", (2, 2, size)), ("bool", ()), frame_size=size, frame_step=step,
        prefill=False,
    )  # fmt: skip
    data = add(model, "SignalWindow", [frames, hann(model, size)], ("int16", (2, 2, size)), shift=11)
    kind = {"int16": 7, "int32": 2, "float32": 0}[dtype]
    if dtype != "int16":
        data = plain(model, "CAST", [data], dtype, (2, 2, size), in_data_type="int16", out_data_type=dtype)
    spectra = add(model, "SignalRfft", [data], (dtype, (2, 2, 98)), T=kind, fft_length=96)
    samples = add(model, "SignalIrfft", [spectra], (dtype, (2, 2, 96)), T=kind, fft_length=96)
    if dtype == "int32":
        samples = plain(model, "CAST", [samples], "int16", (2, 2, 96), in_data_type="int32", out_data_type="int16")
        dtype, kind = "int16", 7
    result = add(model, "SignalOverlapAdd", [samples], (dtype, (2, 2 * step)), T=kind, frame_step=step)
    before = add(model, "SignalDelay", [sound], ("int16", (2, 2 * step)), delay_length=size)
    result.name, before.name, is_valid.name = "clean", "before", "is_valid"
    return model.output(result, before, is_valid)


CHAINS = {
    "sound to scores": (scores,),
    **{f"sound to sound, {dtype}": (denoised, dtype) for dtype in ("int16", "int32", "float32")},
}
"""The builder and its words."""


RUNS, VALID = 40, 6
"""The calls of a sequence, and the first one whose results no frame determines that was not valid."""


def chain(name):
    """Return a file and the inputs of a sequence of calls."""
    make, *words = CHAINS[name]
    model = make(*words)
    return model.build(), [[frame] for frame in sound(model.graph.inputs[0].shape, RUNS)]


def sound(shape, runs):
    """Return a tone of changing pitch with noise, silence and overload, as frames of runs."""
    d, count = Drawn("sound"), int(np.prod(shape)) * runs
    t = np.arange(count) / RATE
    noise = d.array("int16", (count,), small=False) // 64
    wave = 6000 * np.sin(2 * np.pi * (300 + 900 * t) * t) + noise
    wave *= np.where(np.arange(count) * 10 // count == 4, 0, 1) * np.where(np.arange(count) * 10 // count == 7, 9, 1)
    return np.clip(np.rint(wave), -32768, 32767).astype(np.int16).reshape(runs, *shape)

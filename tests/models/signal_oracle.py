# SPDX-License-Identifier: Apache-2.0
"""tflite-micro's own results of signal operators.

Those of its functions are compiled from a tree that OPWEST_TFLITE_MICRO names. kissfft is expected where tflite-micro's
script puts it, or in the directory OPWEST_KISSFFT, with its patch either way. Those of files are from its package.
"""

import ctypes
import json
import os
import subprocess
from pathlib import Path

import numpy as np
from models.campaigns import graph_of
from requirements_support import need, skip_here

RESULTS = Path(__file__).with_name("signal_results.json")
SOURCE = Path(__file__).with_name("signal_reference.cpp")
DOWNLOADS = Path("tensorflow/lite/micro/tools/make/downloads/kissfft")
FLAGS = ("-std=c++17", "-O2", "-w", "-fPIC", "-fwrapv", "-ffp-contract=off", "-DNDEBUG")


def compiled(folder):
    """Return the library of a tree; skip the test without one."""
    named = os.environ.get("OPWEST_TFLITE_MICRO")
    if not named:
        skip_here("OPWEST_TFLITE_MICRO names no tree of tflite-micro")
    need("g++")
    tree = Path(named)
    kissfft = Path(os.environ.get("OPWEST_KISSFFT", tree / DOWNLOADS))
    sources = sorted((tree / "signal/src").glob("*.cc")) + sorted((tree / "signal/src/kiss_fft_wrappers").glob("*.cc"))
    library = folder / "reference.so"
    # Only a macro for assertions is used of the headers of TensorFlow Lite.
    includes = [f"-I{place}" for place in (tree, tree / "signal/src", kissfft, kissfft / "tools")]
    command = ["g++", *FLAGS, *includes, "-shared", SOURCE, *sources, "-o", library]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    return ctypes.CDLL(str(library))


def _at(array):
    return ctypes.c_void_p(array.ctypes.data)


class Reference:
    """One operator of a graph."""

    def __init__(self, library, graph):
        [self.node] = graph.nodes
        self.library, self.options, self.state = library, self.node.options, None
        self.inputs = graph.inputs

    def __call__(self, case):
        """Return the results of a call."""
        arrays = [np.array(array, order="C") for array in case]
        constants = [np.array(t.content, order="C") for t in self.node.inputs if t is not None and t.is_constant]
        results = [np.zeros(tensor.shape, tensor.dtype) for tensor in self.node.outputs]
        getattr(self, self.node.kind.removeprefix("Signal"))(*arrays, *constants, *results)
        return results

    def call(self, name, *given):
        words = [
            _at(one) if isinstance(one, np.ndarray) else ctypes.c_int(one) if isinstance(one, int) else one
            for one in given
        ]
        getattr(self.library, f"ref_{name}")(*words)

    def rings(self, rows, capacity, zeros=0):
        if self.state is None:
            self.library.ref_rings.restype = ctypes.c_void_p
            self.state = ctypes.c_void_p(self.library.ref_rings(rows, capacity, zeros))
        return self.state

    def Window(self, data, window, result):  # noqa: N802 - named as operators
        self.call("window", data, window, data.size // window.size, window.size, self.options["shift"], result)

    def FftAutoScale(self, data, result, bits):  # noqa: N802
        self.call("auto_scale", data, data.size, result, bits)

    def Rfft(self, data, result):  # noqa: N802
        given = data.shape[-1]
        self.call(f"rfft_{data.dtype}", data, data.size // given, given, self.options["fft_length"], result)

    def Irfft(self, data, result):  # noqa: N802
        self.call(f"irfft_{data.dtype}", data, data.size // data.shape[-1], self.options["fft_length"], result)

    def Energy(self, data, result):  # noqa: N802
        self.call("energy", data, self.options["start_index"], self.options["end_index"], result)

    def FilterBank(self, *arrays):  # noqa: N802
        self.call("filter_bank", *arrays[:-1], arrays[-1].size, arrays[-1])

    def FilterBankSquareRoot(self, data, bits, result):  # noqa: N802
        self.call("square_root", data, data.size, int(bits), result)

    def FilterBankLog(self, data, result):  # noqa: N802
        options = self.options
        self.call("log", data, data.size, options["output_scale"], options["input_correction_bits"], result)

    def FilterBankSpectralSubtraction(self, data, result, estimate):  # noqa: N802
        if self.state is None:
            self.state = np.zeros_like(data)
        names = ("smoothing", "one_minus_smoothing", "alternate_smoothing", "alternate_one_minus_smoothing")
        names = (*names, "min_signal_remaining", "smoothing_bits", "spectral_subtraction_bits", "clamping")
        numbers = np.asarray([self.options[name] for name in names], np.uint32)
        self.call("spectral_subtraction", data, data.size, numbers, self.state, result)
        estimate[...] = self.state

    def PCAN(self, data, noise, gains, result):  # noqa: N802
        result[...] = data
        self.call("pcan", gains, self.options["snr_shift"], noise, result, data.size)

    def Framer(self, data, result, valid):  # noqa: N802
        size, step = self.options["frame_size"], self.options["frame_step"]
        zeros = size - step if self.options["prefill"] else 0
        rings = self.rings(data.size // data.shape[-1], -(-size // step) * step, zeros)
        self.call("framer", rings, data, data.shape[-1] // step, size, step, result, valid)

    def OverlapAdd(self, data, result):  # noqa: N802
        size, step = data.shape[-1], self.options["frame_step"]
        rows = data.reshape(-1, *data.shape[-2:])
        results = result.reshape(len(rows), -1, step)
        if self.state is None:
            self.state = np.zeros((len(rows), size), data.dtype)
        for row, frame in np.ndindex(*rows.shape[:2]):
            self.call(f"overlap_add_{data.dtype}", rows[row, frame], self.state[row], size, results[row, frame], step)

    def Stacker(self, data, result, valid):  # noqa: N802
        frames = result.size // data.size
        left, step = self.options["stacker_left_context"], self.options["stacker_step"]
        self.call("stacker", self.rings(1, result.size), data, data.size, left, frames, step, result, valid)

    def Delay(self, data, result):  # noqa: N802
        size, length = data.shape[-1], self.options["delay_length"]
        self.call("delay", self.rings(data.size // size, size + length, length), data, size, result)

    def close(self):
        if isinstance(self.state, ctypes.c_void_p):
            self.library.ref_release(self.state)


def results_of(library, content, cases):
    """Return the results of a sequence of calls of a file with one operator."""
    reference = Reference(library, graph_of(content))
    found = [reference(case) for case in cases]
    reference.close()
    return found


_CHILD = """
import sys
import numpy as np
from tflite_micro.python.tflite_micro import runtime

content = open(sys.argv[1], "rb").read()
cases, found = np.load(sys.argv[2]), {}
interpreter = runtime.Interpreter.from_bytes(content, arena_size=1 << 20)
for run in range(len(cases["input_0"])):
    for number in range(len(cases)):
        interpreter.set_input(cases[f"input_{number}"][run], number)
    interpreter.invoke()
    for number in range(int(sys.argv[4])):
        found.setdefault(f"output_{number}", []).append(np.array(interpreter.get_output(number)))
np.savez(sys.argv[3], **{name: np.stack(arrays) for name, arrays in found.items()})
"""


def by_package(folder, content, cases, outputs):
    """Return the results of a sequence of calls of any file by the Python package `tflite-micro`.

    OPWEST_TFLITE_MICRO_PYTHON is an interpreter that has it; skip the test without one.
    """
    python = os.environ.get("OPWEST_TFLITE_MICRO_PYTHON")
    if not python:
        skip_here("OPWEST_TFLITE_MICRO_PYTHON names no Python with the package tflite-micro")
    file, given, found = (folder / name for name in ("model.tflite", "given.npz", "found.npz"))
    file.write_bytes(content)
    np.savez(given, **{f"input_{i}": np.stack(arrays) for i, arrays in enumerate(zip(*cases, strict=True))})
    command = [python, "-c", _CHILD, file, given, found, str(outputs)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    with np.load(found) as arrays:
        return [list(row) for row in zip(*(arrays[f"output_{i}"] for i in range(outputs)), strict=True)]


def record(folder, count=40):
    """Write the digests of results of tflite-micro, which tests compare where there is none."""
    from models.signal_chains import CHAINS, VALID, chain
    from models.signal_models import FAMILIES, configuration, digest, inputs_of

    library, found = compiled(folder), {}
    for name in FAMILIES:
        found[name] = []
        for number in range(count):
            model, draws = configuration(name, number)
            content = model.build()
            found[name].append(digest(results_of(library, content, inputs_of(graph_of(content), draws))))
    for name in CHAINS:
        content, cases = chain(name)
        results = by_package(folder, content, cases, len(graph_of(content).outputs))
        found[name] = [digest(results[VALID:])]
    rows = ",\n".join(f'"{name}": {json.dumps(" ".join(digests))}' for name, digests in found.items())
    RESULTS.write_text(f"{{\n{rows}\n}}\n")

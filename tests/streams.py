# SPDX-License-Identifier: Apache-2.0
"""A reference of the golden project `streams` in numpy, and its files: `python tests/streams.py` writes them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

PROJECT = Path(__file__).resolve().parent / "golden" / "streams"
STEPS = 5
"""The operators that can fail, numbered from 1 on, in the order of the steps."""
_ONE = np.float32(1)


def parameters() -> dict[str, Floats]:
    """Return the constants of the model, and the first hidden state."""
    random = np.random.default_rng(20261122)
    return {
        "coeffs": np.array([[0.2, 0.4, 0.2, -0.3, 0.1], [0.3, -0.6, 0.3, 0.2, 0.15]], np.float32),
        "weights": random.normal(0, 0.7, [9, 6]).astype(np.float32),
        "kernel": random.normal(0, 0.5, [2, 10]).astype(np.float32),
        "h": np.array([0.5, -0.25, 0.125], np.float32),
    }


def frames(count: int, seed: int) -> Floats:
    """Return frames of input, [count, 4]: noise with a period of its own for every seed."""
    random = np.random.default_rng(seed)
    time = np.arange(4 * count)
    signal = np.sin(time * (0.1 + 0.05 * seed)) + random.normal(0, 0.2, 4 * count)
    return signal.astype(np.float32).reshape(count, 4)


class Stream:
    """One stream: the operators of `operators/streams.c`, in float32 and in the same order."""

    def __init__(self) -> None:
        self.constants = parameters()
        self.reset()

    def reset(self) -> None:
        self.z = np.zeros([2, 2], np.float32)
        self.h = self.constants["h"].copy()
        self.ring = np.full([5, 2], 0.125, np.float32)
        self.place = 0

    def run(self, x: Floats) -> Floats:
        """Return the output of one frame, [5]."""
        bands = self._filters(x)
        features = np.array([self._mean(band) for band in bands], np.float32)
        self.h = self._recurrent(features)
        self.ring[self.place] = features
        self.place = (self.place + 1) % 5
        return np.concatenate([self.h, self._convolve()])

    def _filters(self, x: Floats) -> Floats:
        bands = np.zeros([2, 4], np.float32)
        for c, s, band in zip(self.constants["coeffs"], self.z, bands, strict=True):
            for i, value in enumerate(x):
                y = c[0] * value + s[0]
                s[0] = (c[1] * value - c[3] * y) + s[1]
                s[1] = c[2] * value - c[4] * y
                band[i] = y
        return bands

    @staticmethod
    def _mean(band: Floats) -> np.float32:
        total = np.float32(0)
        for value in band:
            total = total + np.abs(value)
        return np.float32(total * np.float32(0.25))

    def _recurrent(self, features: Floats) -> Floats:
        gates = np.zeros(9, np.float32)
        half = np.float32(0.5)
        for gate, w in enumerate(self.constants["weights"]):
            total = w[5]
            for i in range(2):
                total = total + w[i] * features[i]
            for i in range(3):
                seen = self.h[i] if gate < 6 else gates[3 + i] * self.h[i]
                total = total + w[2 + i] * seen
            squashed = total / (_ONE + np.abs(total))
            gates[gate] = half + half * squashed if gate < 6 else squashed
        return (_ONE - gates[:3]) * self.h + gates[:3] * gates[6:]

    def _convolve(self) -> Floats:
        flat = self.ring.reshape(-1)
        y = np.zeros(2, np.float32)
        for out, kernel in enumerate(self.constants["kernel"]):
            total = np.float32(0)
            for i in range(10):
                total = total + kernel[i] * flat[(2 * self.place + i) % 10]
            y[out] = total
        return y


def outputs(x: Floats) -> Floats:
    """Return the outputs of a sequence of frames from the first state on, [frames, 5]."""
    stream = Stream()
    return np.array([stream.run(frame) for frame in x], np.float32)


RESET, OPEN_AGAIN, RESTORE = -1, -2, -3
"""Events before a frame, as in tests/compile/programs/two_streams.c; from 1 on, the operator that fails."""


def events(count: int, seed: int) -> list[int]:
    """Return the event before each frame: every kind several times, at frames that depend on the seed."""
    found = [0] * count
    kinds = [*range(1, STEPS + 1), RESET, OPEN_AGAIN, RESTORE]
    for number, frame in enumerate(range(20 + seed, count, 41)):
        found[frame] = kinds[number % len(kinds)]
    return found


def interrupted(x: Floats, happening: list[int]) -> Floats:
    """Return the outputs of a sequence of frames with events: all but RESTORE set the first state."""
    stream = Stream()
    found = []
    for frame, event in zip(x, happening, strict=True):
        if event not in (0, RESTORE):
            stream.reset()
        found.append(stream.run(frame))
    return np.array(found, np.float32)


def header(count: int) -> str:
    """Return two_streams.h: frames, events and expected outputs of two streams, exactly, as hexadecimal floats."""
    lines = [
        f"#define FRAMES {count}",
        f"enum {{EVENT_RESET = {RESET}, EVENT_OPEN_AGAIN = {OPEN_AGAIN}, EVENT_RESTORE = {RESTORE}}};",
        "struct stream {",
        "\tsigned char events[FRAMES];",
        "\tfloat x[FRAMES][4];",
        "\tfloat y[FRAMES][5];",
        "};",
    ]
    for seed, name in enumerate(("first", "second"), start=1):
        x, happening = frames(count, seed), events(count, seed)
        lines.append(f"static const struct stream stream_{name} = {{")
        lines.append(f"\t{{{', '.join(map(str, happening))}}},")
        for array in (x, interrupted(x, happening)):
            rows = ("{" + ", ".join(f"{float(v).hex()}f" for v in row) + "}" for row in array)
            lines += ["\t{", *(f"\t\t{row}," for row in rows), "\t},"]
        lines.append("};")
    return "\n".join(lines) + "\n"


def write_files(folder: Path, count: int) -> None:
    """Write the parameters and the vectors of `count` frames to the directory of the manifest."""
    x = frames(count, 1)
    np.savez(folder / "parameters.npz", **parameters())
    np.savez(folder / "frames.npz", x=x, fail=np.zeros([count, 1], np.int32), y=outputs(x))


if __name__ == "__main__":
    write_files(PROJECT, 50)

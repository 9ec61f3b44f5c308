# SPDX-License-Identifier: Apache-2.0
"""Train the classifier on synthetic vibration; write its C code, the parameters, the vectors and a recording.

    pip install 'opwest[examples]'
    python examples/vibration/train.py

emlearn writes operators/classifier.h from scikit-learn's random tree. The data is the same in each run.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from reference import CLASSES, GRAVITY_MG, RATE, SAMPLES, WINDOW, at_rest, coefficients, features

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

HERE = Path(__file__).resolve().parent
SHAFT_HZ, RESONANCE_HZ, BEARING_HZ = 25.0, 1000.0, 107.0
FRAMES = 40
RECORDED = 16
"""Frames of each class in the recording."""


def vibration(kind: str, random: np.random.Generator) -> Array:
    """Return one recording of a machine in mg, int16 [40, 64]."""
    time = np.arange(FRAMES * SAMPLES) / RATE
    shaft = 2 * np.pi * (SHAFT_HZ * random.uniform(0.95, 1.05) * time + random.uniform())
    signal = random.uniform(40, 80) * np.sin(shaft) + random.normal(0, random.uniform(5, 45), time.shape)
    if kind == "imbalance":
        signal += random.uniform(80, 400) * np.sin(shaft)
    elif kind == "looseness":
        for harmonic in (0.5, 2, 3, 4):
            signal += random.uniform(30, 140) * np.sin(harmonic * shaft + random.uniform(0, 6))
    elif kind == "bearing":
        since = (time + random.uniform(0, 0.01)) % (1 / BEARING_HZ)  # the last impact
        ringing = np.exp(-400 * since) * np.sin(2 * np.pi * RESONANCE_HZ * since)
        signal += random.uniform(100, 300) * ringing
    return np.round(signal + GRAVITY_MG).astype(np.int16).reshape(FRAMES, SAMPLES)


def recordings(each: int, seed: int) -> tuple[Array, Array]:
    """Return recordings of all classes, [4 * each, 40, 64], and their classes."""
    random = np.random.default_rng(seed)
    found = [vibration(kind, random) for kind in CLASSES for _ in range(each)]
    return np.stack(found), np.repeat(np.arange(len(CLASSES)), each)


def windows(each: int, seed: int) -> tuple[Array, Array]:
    """Return the features of full windows, and their classes."""
    signals, classes = recordings(each, seed)
    found = features(signals)[:, WINDOW:]
    return found.reshape(-1, found.shape[2]), np.repeat(classes, found.shape[1])


def write_recording(frames: Array, labels: Array) -> None:
    """Write the header with the frames that the sensor of the application plays."""
    lines = [
        "/* SPDX-License-Identifier: Apache-2.0 */",
        "/* Written by train.py: acceleration in mg, and the class after each frame. */",
        "/* clang-format off */",
        "#include <stdint.h>",
        "",
        f"enum {{\n\tFRAMES = {len(frames)},\n\tSAMPLES = {SAMPLES}\n}};",
        "",
        "/* clang-format off */",
        "static const int16_t recording[FRAMES][SAMPLES] = {",
    ]
    for frame in frames:
        rows = [", ".join(map(str, frame[i : i + 8])) for i in range(0, SAMPLES, 8)]
        lines += ["\t{", *(f"\t\t{row}," for row in rows), "\t},"]
    lines += ["};", "", "static const int32_t expected[FRAMES] = {"]
    lines += [f"\t{', '.join(map(str, labels[i : i + 16]))}," for i in range(0, len(labels), 16)]
    lines += ["};", "/* clang-format on */", ""]
    (HERE / "application" / "recording.h").write_text("\n".join(lines), encoding="ascii")


def main() -> None:
    """Train, convert, write."""
    import emlearn
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(max_depth=5, random_state=1)
    tree.fit(*windows(60, seed=1))
    held_out, classes = windows(10, seed=2)
    print(f"held-out windows: {tree.score(held_out, classes):.1%} correct")
    emlearn.convert(tree, method="inline", dtype="float").save(file=str(HERE / "classifier.tmp"), name="condition")
    text = (HERE / "classifier.tmp").read_text(encoding="utf-8")
    (HERE / "classifier.tmp").unlink()
    origin = f"emlearn {version('emlearn')} from a tree of scikit-learn {version('scikit-learn')}, by train.py"
    kept = [line.rstrip() for line in text.splitlines() if line.strip()]
    header = [
        "/* SPDX-License-Identifier: Apache-2.0 */",
        f"/* Written by {origin}. */",
        "/* clang-format off */",
        *kept,
    ]
    (HERE / "operators" / "classifier.h").write_text("\n".join(header) + "\n", encoding="utf-8")
    np.savez(HERE / "parameters.npz", coeffs=coefficients(), z=at_rest()[:, :, 0])
    signals, _ = recordings(1, seed=3)
    frames = signals[:, :RECORDED].reshape(1, -1, SAMPLES)
    found = features(frames)[0]
    labels = tree.predict(found).astype(np.int32)
    np.savez(HERE / "vectors.npz", frame=frames[0], features=found, label=labels[:, None])
    write_recording(frames[0], labels)
    print("recording:", " ".join(CLASSES[label] for label in labels[WINDOW - 1 :: WINDOW]))


if __name__ == "__main__":
    main()

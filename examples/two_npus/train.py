# SPDX-License-Identifier: Apache-2.0
"""Train both branches together in floating point, quantize them, and write the files for the firmware.

Writes parameters.npz (weights, biases, factors), programs/*.onpu (how the accelerators scale their sums)
and application/held_out.h (images that training never saw, with the answers of the integer reference).
All of it is checked in; running this again on the same machine writes the same bytes.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import reference
from numpy.typing import NDArray

try:
    from sklearn.datasets import load_digits
    from threadpoolctl import threadpool_limits
except ModuleNotFoundError as error:
    sys.exit(f"error: {error.name} is not installed; try: pip install 'opwest[examples]'")

MAKE_PROGRAM = reference.EXAMPLE.parents[1] / "zephyr_module" / "drivers" / "npu_emul" / "make_program.py"
SEED = 20240229
HELD_OUT = 360
SHOWN = 40
"""Number of held-out images in the application, limited for its run time."""
# As in examples/digits, where cross-validation on the training images chose them, but for fewer epochs.
EPOCHS = 60
BATCH = 64
LEARNING_RATE = 0.01
WEIGHT_DECAY = 0.1

Floats = NDArray[np.float64]
Parameters = dict[str, Floats]
Kernels = Sequence[tuple[str, Mapping[str, int]]]


def network_inputs(images: NDArray[np.int8]) -> tuple[Floats, Floats]:
    """Return the inputs of the branches as real numbers from 0 to 1: patches [N, 16, 9], pixels [N, 64]."""
    stretched = (reference.stretch(images).astype(np.float64) - reference.PAPER) / reference.INK
    return reference.patches(stretched).reshape(len(images), 16, 9), images.reshape(len(images), -1) / 16


def features(parameters: Parameters, seen: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Compute the hidden layers of both branches and their ReLU."""
    first = np.maximum(seen[0] @ parameters["conv_weight"] + parameters["conv_bias"], 0)
    second = np.maximum(seen[1] @ parameters["hidden_weight"] + parameters["hidden_bias"], 0)
    return first.reshape(len(first), -1), second


def branch_scores(parameters: Parameters, hidden: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Compute the scores of both branches."""
    first = hidden[0] @ parameters["conv_score_weight"] + parameters["conv_score_bias"]
    second = hidden[1] @ parameters["hidden_score_weight"] + parameters["hidden_score_bias"]
    return first, second


def gradients(parameters: Parameters, seen: tuple[Floats, Floats], labels: NDArray[np.int64]) -> Parameters:
    """Differentiate the mean cross-entropy of one batch, whose scores are the sums of both branches."""
    count = len(labels)
    hidden = features(parameters, seen)
    scores = np.add(*branch_scores(parameters, hidden))
    slope = np.exp(scores - scores.max(axis=1, keepdims=True))
    slope /= slope.sum(axis=1, keepdims=True)
    slope[np.arange(count), labels] -= 1
    slope /= count

    first = ((slope @ parameters["conv_score_weight"].T) * (hidden[0] > 0)).reshape(-1, reference.CHANNELS)
    second = (slope @ parameters["hidden_score_weight"].T) * (hidden[1] > 0)
    return {
        "conv_weight": seen[0].reshape(-1, seen[0].shape[-1]).T @ first,
        "conv_bias": first.sum(axis=0),
        "conv_score_weight": hidden[0].T @ slope,
        "conv_score_bias": slope.sum(axis=0),
        "hidden_weight": seen[1].T @ second,
        "hidden_bias": second.sum(axis=0),
        "hidden_score_weight": hidden[1].T @ slope,
        "hidden_score_bias": slope.sum(axis=0),
    }


def train(images: NDArray[np.int8], labels: NDArray[np.int64]) -> Parameters:
    """Train with Adam, decoupled weight decay and a learning rate that falls to zero."""
    random = np.random.default_rng(SEED)
    layers = {
        "conv": (reference.KERNEL**2, reference.CHANNELS),
        "conv_score": (16 * reference.CHANNELS, reference.CLASSES),
        "hidden": (reference.PIXELS, reference.HIDDEN),
        "hidden_score": (reference.HIDDEN, reference.CLASSES),
    }
    parameters = {f"{name}_weight": random.normal(0, np.sqrt(2 / shape[0]), shape) for name, shape in layers.items()}
    parameters |= {f"{name}_bias": np.zeros(shape[1]) for name, shape in layers.items()}
    seen = network_inputs(images)
    mean = {key: np.zeros_like(value) for key, value in parameters.items()}
    square = {key: np.zeros_like(value) for key, value in parameters.items()}
    batches = len(images) // BATCH
    for epoch in range(EPOCHS):
        order = random.permutation(len(images))
        for batch in range(batches):
            step = epoch * batches + batch + 1
            chosen = order[batch * BATCH : (batch + 1) * BATCH]
            rate = LEARNING_RATE * (1 - step / (EPOCHS * batches))
            slopes = gradients(parameters, (seen[0][chosen], seen[1][chosen]), labels[chosen])
            for key, gradient in slopes.items():
                mean[key] += 0.1 * (gradient - mean[key])
                square[key] += 0.001 * (gradient**2 - square[key])
                move = (mean[key] / (1 - 0.9**step)) / (np.sqrt(square[key] / (1 - 0.999**step)) + 1e-8)
                decay = WEIGHT_DECAY * parameters[key] if key.endswith("weight") else 0
                parameters[key] -= rate * (move + decay)
    return parameters


class Quantizer:
    """Quantizes layer by layer, symmetrically, one scale per tensor; scales are integer units per 1.0."""

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters
        self.arrays: reference.Arrays = {}

    def layer(self, name: str, input_scale: float, output_scale: float) -> dict[str, int]:
        """Quantize the weights and the bias of a layer; return how its kernel scales the sums."""
        weight = self.parameters[f"{name}_weight"].T
        weight_scale = 127 / np.abs(weight).max()
        sum_scale = input_scale * weight_scale
        self.arrays[f"{name}_weight"] = np.ascontiguousarray(np.rint(weight * weight_scale), dtype=np.int8)
        self.arrays[f"{name}_bias"] = np.rint(self.parameters[f"{name}_bias"] * sum_scale).astype(np.int32)
        shift = int(np.floor(14 - np.log2(output_scale / sum_scale)))  # a multiplier of 14 bits
        return {"multiplier": round(output_scale / sum_scale * 2**shift), "shift": shift}

    def all(self, calibration: NDArray[np.int8]) -> tuple[Kernels, Kernels]:
        """Quantize both branches; return their programs."""
        hidden = features(self.parameters, network_inputs(calibration))
        scores = branch_scores(self.parameters, hidden)
        # Features use all of int8, from its least number on; scores are symmetric around 0.
        feature_scales = [255 / values.max() for values in hidden]
        score_scales = [127 / np.abs(values).max() for values in scores]
        paper = {"input_zero": reference.PAPER}
        relu = {"output_zero": -128}
        conv = [
            ("conv2d", {**self.layer("conv", reference.INK, feature_scales[0]), **paper, **relu}),
            ("dense", {**self.layer("conv_score", feature_scales[0], score_scales[0]), "input_zero": -128}),
        ]
        dense = [
            ("dense", {**self.layer("hidden", 16, feature_scales[1]), **relu}),
            ("dense", {**self.layer("hidden_score", feature_scales[1], score_scales[1]), "input_zero": -128}),
        ]
        kernel = (reference.CHANNELS, reference.KERNEL, reference.KERNEL, 1)
        self.arrays["conv_weight"] = self.arrays["conv_weight"].reshape(kernel)
        for name, scale in zip(("conv_factor", "dense_factor"), score_scales, strict=True):
            self.arrays[name] = np.array([np.rint(4096 * min(score_scales) / scale)], dtype=np.int32)
        return numbered(conv), numbered(dense)


def numbered(kernels: Kernels) -> Kernels:
    """Return the two kernels of a program with their numbers."""
    numbers = (reference.FEATURES, reference.SCORES)
    return [(kind, {"id": number, **keys}) for number, (kind, keys) in zip(numbers, kernels, strict=True)]


def program_maker() -> Callable[[Kernels], bytes]:
    """Return make_program() of the emulated accelerator."""
    spec = importlib.util.spec_from_file_location("make_program", MAKE_PROGRAM)
    if spec is None or spec.loader is None:
        sys.exit(f"error: cannot read '{MAKE_PROGRAM}'")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.make_program


def held_out_header(images: NDArray[np.int8], labels: NDArray[np.int64], predictions: NDArray[np.int32]) -> str:
    """Render held-out images as C: one line an image, one character a pixel."""
    rows = [
        f'\t{{"{"".join(chr(ord("a") + pixel) for pixel in image.ravel())}", {label}, {prediction}}},'
        for image, label, prediction in zip(images, labels, predictions, strict=True)
    ]
    return "\n".join(
        [
            "/* SPDX-License-Identifier: Apache-2.0 AND CC-BY-4.0 */",
            "/* Written by examples/two_npus/train.py, do not edit. */",
            "",
            "/**",
            " * @file",
            f" * {len(images)} handwritten digits that were not used for training, from the UCI data set that",
            " * scikit-learn calls `load_digits`. E. Alpaydin and C. Kaynak (1998), Optical Recognition of",
            " * Handwritten Digits, https://doi.org/10.24432/C50P49, CC BY 4.0; pixels written as letters.",
            " */",
            "",
            "#ifndef TWO_NPUS_HELD_OUT_H_",
            "#define TWO_NPUS_HELD_OUT_H_",
            "",
            "#include <stdint.h>",
            "",
            "enum {",
            f"\tHELD_OUT_IMAGES = {len(images)},",
            f"\tHELD_OUT_PIXELS = {reference.PIXELS},",
            "};",
            "",
            "/** One image, 8 rows of 8 pixels. */",
            "struct held_out_image {",
            "\t/** `'a'` is paper (0), `'q'` is full ink (16). */",
            "\tchar pixels[HELD_OUT_PIXELS + 1];",
            "\t/** The digit that was written. */",
            "\tint8_t label;",
            "\t/** The prediction of reference.py. */",
            "\tint8_t reference;",
            "};",
            "",
            "static const struct held_out_image held_out[HELD_OUT_IMAGES] = {",
            *rows,
            "};",
            "",
            "#endif /* TWO_NPUS_HELD_OUT_H_ */",
            "",
        ]
    )


def write(output: Path, files: Mapping[str, bytes], arrays: reference.Arrays) -> None:
    """Write all files and print their names and sizes."""
    try:
        for name, content in files.items():
            path = output / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        np.savez(output / "parameters.npz", **arrays)  # members are dated 1980, so equal arrays are equal bytes
    except OSError as error:
        sys.exit(f"error: {error.filename}: {error.strerror}")
    for name in (*files, "parameters.npz"):
        print(f"{output / name}: {(output / name).stat().st_size} bytes")


def main() -> None:
    """Train, quantize, report and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--output", type=Path, default=reference.EXAMPLE, help="output directory (default: the example itself)"
    )
    output = parser.parse_args().output

    started = time.perf_counter()
    digits = load_digits()
    images = digits.images.astype(np.int8)[..., np.newaxis]
    order = np.random.default_rng(SEED).permutation(len(images))
    held_out, training = order[:HELD_OUT], order[HELD_OUT:]
    labels = digits.target

    with threadpool_limits(1):  # sums in another order would round differently
        quantizer = Quantizer(train(images[training], labels[training]))
        conv, dense = quantizer.all(images[training])
    make_program = program_maker()
    programs = [make_program(conv), make_program(dense)]
    network = reference.Network(quantizer.arrays, *map(reference.read_program, programs))
    for title, chosen in (("training", training), ("held-out", held_out), ("shown", held_out[:SHOWN])):
        right = reference.predict(images[chosen], network) == labels[chosen]
        print(f"{title} images: {right.mean():.2%} of {len(chosen)}")

    shown = held_out[:SHOWN]
    header = held_out_header(images[shown], labels[shown], reference.predict(images[shown], network))
    files = {
        "programs/conv.onpu": programs[0],
        "programs/dense.onpu": programs[1],
        "application/held_out.h": header.encode("ascii"),
    }
    write(output, files, quantizer.arrays)
    print(f"{time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main()

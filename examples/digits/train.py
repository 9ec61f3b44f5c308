# SPDX-License-Identifier: Apache-2.0
"""Train the digits network in floating point, quantize it, and write the files for the firmware.

Writes parameters.npz (weights and biases), application/held_out.h (images that training never saw,
their true labels, and what the integer reference answers), and vectors.npz (some of these images and
answers as golden vectors). All are checked in; running this again on the same machine writes the same
bytes.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import reference
from numpy.typing import NDArray

try:
    from sklearn.datasets import load_digits
    from threadpoolctl import threadpool_limits
except ModuleNotFoundError as error:
    sys.exit(f"error: {error.name} is not installed; try: pip install 'opwest[examples]'")

EXAMPLE = Path(__file__).resolve().parent
SEED = 20240229
HELD_OUT = 360
VECTORS = 20
# Chosen by cross-validation on the training images; the held-out ones took no part.
EPOCHS = 100
BATCH = 64
LEARNING_RATE = 0.01
WEIGHT_DECAY = 0.1
TAPS = reference.KERNEL**2
PIXELS = 8 * 8
INPUTS = 4 * 4 * reference.CHANNELS

Floats = NDArray[np.float64]
Parameters = dict[str, Floats]


def convolve(parameters: Parameters, patches: Floats) -> Floats:
    """Compute the convolution and its ReLU in floating point."""
    return np.maximum(patches @ parameters["conv_weight"] + parameters["conv_bias"], 0)


def gradients(parameters: Parameters, patches: Floats, labels: NDArray[np.int64]) -> Parameters:
    """Differentiate the mean cross-entropy of one batch; patches are [N, 8, 8, 9]."""
    count = len(labels)
    features = convolve(parameters, patches)
    windows = features.reshape(count, 4, 2, 4, 2, reference.CHANNELS)
    pooled = windows.max(axis=(2, 4), keepdims=True)
    flat = pooled.reshape(count, INPUTS)
    scores = flat @ parameters["dense_weight"] + parameters["dense_bias"]

    slope = np.exp(scores - scores.max(axis=1, keepdims=True))
    slope /= slope.sum(axis=1, keepdims=True)
    slope[np.arange(count), labels] -= 1
    slope /= count

    back = (slope @ parameters["dense_weight"].T).reshape(pooled.shape)
    # Only the largest value of a window, and only where the ReLU let it through, passes a gradient on.
    back = (back * ((windows == pooled) & (windows > 0))).reshape(-1, reference.CHANNELS)
    return {
        "conv_weight": patches.reshape(-1, TAPS).T @ back,
        "conv_bias": back.sum(axis=0),
        "dense_weight": flat.T @ slope,
        "dense_bias": slope.sum(axis=0),
    }


def train(images: NDArray[np.int8], labels: NDArray[np.int64]) -> Parameters:
    """Train with Adam, decoupled weight decay and a learning rate that falls to zero."""
    random = np.random.default_rng(SEED)
    parameters = {
        "conv_weight": random.normal(0, np.sqrt(2 / TAPS), (TAPS, reference.CHANNELS)),
        "conv_bias": np.zeros(reference.CHANNELS),
        "dense_weight": random.normal(0, np.sqrt(2 / INPUTS), (INPUTS, reference.CLASSES)),
        "dense_bias": np.zeros(reference.CLASSES),
    }
    patches = reference.neighbourhoods(images / 16)
    mean = {key: np.zeros_like(value) for key, value in parameters.items()}
    square = {key: np.zeros_like(value) for key, value in parameters.items()}
    batches = len(images) // BATCH
    for epoch in range(EPOCHS):
        order = random.permutation(len(images))
        for batch in range(batches):
            step = epoch * batches + batch + 1
            chosen = order[batch * BATCH : (batch + 1) * BATCH]
            rate = LEARNING_RATE * (1 - step / (EPOCHS * batches))
            for key, gradient in gradients(parameters, patches[chosen], labels[chosen]).items():
                mean[key] += 0.1 * (gradient - mean[key])
                square[key] += 0.001 * (gradient**2 - square[key])
                move = (mean[key] / (1 - 0.9**step)) / (np.sqrt(square[key] / (1 - 0.999**step)) + 1e-8)
                decay = WEIGHT_DECAY * parameters[key] if key.endswith("weight") else 0
                parameters[key] -= rate * (move + decay)
    return parameters


def quantize(parameters: Parameters, calibration: NDArray[np.int8]) -> dict[str, NDArray[Any]]:
    """Quantize symmetrically, one scale per tensor, so that requantization is a plain shift.

    The shift is fixed in the compiled operator. The scale of the convolution's weights is therefore the
    largest one with which neither a weight nor an activation of the calibration images leaves int8.
    """
    pixel_scale = 16  # integer units per 1.0: pixels are 0 to 16 and were trained on as 0 to 1
    largest_feature = convolve(parameters, reference.neighbourhoods(calibration / 16)).max()
    weight_scale = min(
        127 / np.abs(parameters["conv_weight"]).max(),
        127 * 2**reference.SHIFT / (largest_feature * pixel_scale),
    )
    sum_scale = pixel_scale * weight_scale
    feature_scale = sum_scale / 2**reference.SHIFT
    dense_scale = 127 / np.abs(parameters["dense_weight"]).max()
    print(f"scales: conv_weight {weight_scale:.3f}, features {feature_scale:.3f}, dense {dense_scale:.3f}")
    kernel = (reference.CHANNELS, reference.KERNEL, reference.KERNEL, 1)
    return {
        "conv_weight": np.rint(parameters["conv_weight"].T.reshape(kernel) * weight_scale).astype(np.int8),
        "conv_bias": np.rint(parameters["conv_bias"] * sum_scale).astype(np.int32),
        "dense_weight": np.rint(parameters["dense_weight"].T * dense_scale).astype(np.int8, order="C"),
        "dense_bias": np.rint(parameters["dense_bias"] * feature_scale * dense_scale).astype(np.int32),
    }


def held_out_header(images: NDArray[np.int8], labels: NDArray[np.int64], predictions: NDArray[np.int32]) -> str:
    """Render the held-out images as C: one line an image, one character a pixel."""
    rows = [
        f'\t{{"{"".join(chr(ord("a") + pixel) for pixel in image.ravel())}", {label}, {prediction}}},'
        for image, label, prediction in zip(images, labels, predictions, strict=True)
    ]
    return "\n".join(
        [
            "/* SPDX-License-Identifier: Apache-2.0 AND CC-BY-4.0 */",
            "/* Written by examples/digits/train.py, do not edit. */",
            "",
            "/**",
            " * @file",
            f" * {len(images)} handwritten digits that were not used for training, from the UCI data set that",
            " * scikit-learn calls `load_digits`. E. Alpaydin and C. Kaynak (1998), Optical Recognition of",
            " * Handwritten Digits, https://doi.org/10.24432/C50P49, CC BY 4.0; pixels written as letters.",
            " */",
            "",
            "#ifndef DIGITS_HELD_OUT_H_",
            "#define DIGITS_HELD_OUT_H_",
            "",
            "#include <stdint.h>",
            "",
            "enum {",
            f"\tHELD_OUT_IMAGES = {len(images)},",
            f"\tHELD_OUT_PIXELS = {PIXELS},",
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
            "#endif /* DIGITS_HELD_OUT_H_ */",
            "",
        ]
    )


def main() -> None:
    """Train, quantize, report and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=EXAMPLE, help="output directory (default: the example itself)")
    output = parser.parse_args().output

    started = time.perf_counter()
    digits = load_digits()
    images = digits.images.astype(np.int8)[..., np.newaxis]
    order = np.random.default_rng(SEED).permutation(len(images))
    held_out, training = order[:HELD_OUT], order[HELD_OUT:]
    labels = digits.target

    with threadpool_limits(1):  # sums in another order would round differently
        parameters = train(images[training], labels[training])
        integers = quantize(parameters, images[training])

    predictions = reference.predict(images[held_out], integers)
    correct = int((predictions == labels[held_out]).sum())
    in_training = (reference.predict(images[training], integers) == labels[training]).mean()
    print(f"training images: {in_training:.2%} of {len(training)}")
    print(f"held-out images: {correct / HELD_OUT:.2%} of {HELD_OUT} ({HELD_OUT - correct} wrong)")

    archive, vectors = output / "parameters.npz", output / "vectors.npz"
    header = output / "application" / "held_out.h"
    try:
        header.parent.mkdir(parents=True, exist_ok=True)
        np.savez(archive, **integers)  # members are dated 1980, so equal arrays are equal bytes
        np.savez(vectors, image=images[held_out[:VECTORS]], label=predictions[:VECTORS])
        text = held_out_header(images[held_out], labels[held_out], predictions)
        header.write_text(text, encoding="ascii", newline="\n")
    except OSError as error:
        sys.exit(f"error: {error.filename}: {error.strerror}")
    for path in (archive, vectors, header):
        print(f"{path}: {path.stat().st_size} bytes")
    print(f"{time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main()

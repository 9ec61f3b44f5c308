# SPDX-License-Identifier: Apache-2.0
"""Anomaly detection from the model file to an image: python examples/anomaly_detection/run.py ad01_int8.tflite."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from imported_demo import Demonstration, main

EXAMPLE = Demonstration(
    name="anomaly_detection",
    about="Sounds of a machine that is not well: the MLPerf Tiny model as a Zephyr application.",
    inputs=5 * 128,
    outputs=5 * 128,
    arm_options=("-DCONFIG_MINIMAL_LIBC=y",),  # no mathematics is needed
)

if __name__ == "__main__":
    sys.exit(main(EXAMPLE))

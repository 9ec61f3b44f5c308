# SPDX-License-Identifier: Apache-2.0
"""Keyword spotting from the model file to a running image: python examples/keyword_spotting/run.py kws_int8.tflite."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from imported_demo import Demonstration, main

EXAMPLE = Demonstration(
    name="keyword_spotting",
    about="Spoken words: the MLPerf Tiny model as a Zephyr application.",
    inputs=49 * 10,
    outputs=12,
    # The softmax calls expf. Newlib comes built with the compiler; Debian's has no locks for threads.
    arm_options=("-DCONFIG_NEWLIB_LIBC=y", "-DCONFIG_MULTITHREADING=n"),
)

if __name__ == "__main__":
    sys.exit(main(EXAMPLE))

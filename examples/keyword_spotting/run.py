# SPDX-License-Identifier: Apache-2.0
"""Keyword spotting from the model file to a running image: python examples/keyword_spotting/run.py kws_int8.tflite."""

import argparse
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "scripts")]
import front_end  # noqa: E402
import speech  # noqa: E402
from imported_demo import Demonstration, main  # noqa: E402


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sound."""
    wav = {"type": speech.load, "metavar": "FILE.wav", "help": "sound: 1 channel, 16 bits, 16 kHz, repeatable"}
    parser.add_argument("--wav", action="append", default=[], **wav)
    parser.add_argument(
        "--say",
        action="append",
        default=[],
        metavar="WORD",
        help="word to synthesise; repeatable (default: nine words)",
    )


def add_front_end(given: argparse.Namespace, model: Path) -> None:
    """Make sound the model's input."""
    words = given.say or ([] if given.wav else speech.WORDS)
    if words and not given.say and shutil.which(speech.SYNTHESISER) is None:
        print(f"== skipped: spoken words ({speech.SYNTHESISER} is not installed); the sound has no meaning")
        samples = speech.noise(3)
    else:
        samples = speech.sound(given.wav, words)
    front_end.add(model, given.model, speech.blocks(samples))


EXAMPLE = Demonstration(
    name="keyword_spotting",
    about="Spoken words: the MLPerf Tiny model with its front end as a Zephyr application.",
    inputs=49 * 10,
    outputs=12,
    arm_options=("-DCONFIG_MINIMAL_LIBC=y",),  # no mathematics is needed
    add_options=add_options,
    change=add_front_end,
)

if __name__ == "__main__":
    sys.exit(main(EXAMPLE))

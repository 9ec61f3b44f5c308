# SPDX-License-Identifier: Apache-2.0
"""Sound for the model: WAV files, or words of the speech synthesiser eSpeak NG, in blocks of 100 ms.

    python examples/keyword_spotting/speech.py recording.wav -o audio.npy
    python examples/keyword_spotting/speech.py --say yes --say no --wav spoken.wav -o audio.npy

The array, int16 [blocks, 1600], is the input of `opwest run DIR --stream audio=audio.npy`.
"""

from __future__ import annotations

import argparse
import io
import shutil
import subprocess
import sys
import wave
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from features import BLOCK, CLIP, RATE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

SYNTHESISER = "espeak-ng"
VOICE = ("-v", "en-gb", "-s", "140")
WORDS = ("yes", "no", "up", "down", "left", "right", "on", "off", "go")


def read_wav(content: bytes, name: str, rate: int = RATE) -> Array:
    """Return the samples of a WAV file, int16. Raises SystemExit for another format."""
    try:
        with wave.open(io.BytesIO(content)) as file:
            form = (file.getnchannels(), 8 * file.getsampwidth(), file.getframerate())
            # A synthesiser that writes to a pipe leaves the length open: read what is there.
            data = file.readframes(len(content))
    except (wave.Error, EOFError) as error:
        raise SystemExit(f"error: {name}: {error}") from None
    if form != (1, 16, rate):
        found = f"{form[0]} channels, {form[1]} bits, {form[2]} Hz"
        raise SystemExit(
            f"error: {name}: {found}, expected 1 channel, 16 bits, {rate} Hz\n"
            f"hint: convert it, for example with `sox {name} -c 1 -b 16 -r {rate} converted.wav`"
        )
    return np.frombuffer(data[: len(data) // 2 * 2], "<i2").astype(np.int16)


def load(name: str) -> Array:
    """Return the samples of a WAV file. Raises SystemExit for a file that cannot be used."""
    try:
        return read_wav(Path(name).read_bytes(), name)
    except OSError as error:
        raise SystemExit(f"error: cannot read '{name}': {error.strerror}") from None


def say(word: str) -> Array:
    """Return a clip of one second with a spoken word in its middle, int16 [16000]."""
    done = subprocess.run([SYNTHESISER, *VOICE, "--stdout", word], capture_output=True, check=True)
    spoken = resampled(read_wav(done.stdout, word, 22050), 22050)[:CLIP]
    begin = (CLIP - len(spoken)) // 2
    return np.pad(spoken, (begin, CLIP - len(spoken) - begin))


def resampled(samples: Array, rate: int) -> Array:
    """Return samples of a higher rate at 16 kHz, band-limited, int16."""
    length = len(samples) * RATE // rate
    spectrum = np.fft.rfft(samples)[: length // 2 + 1]
    return np.clip(np.round(np.fft.irfft(spectrum, length) * (length / len(samples))), -32768, 32767).astype(np.int16)


def noise(seconds: int) -> Array:
    """Return sound without a meaning, int16: tones that rise and fall, and noise, the same on every machine."""
    random = np.random.default_rng(20261122)
    time = np.arange(seconds * RATE) / RATE
    loudness = 6000 * (0.5 - 0.5 * np.cos(2 * np.pi * time)) ** 4
    tones = np.sin(2 * np.pi * (300 * time + 40 * np.sin(7 * time))) + np.sin(2 * np.pi * 1700 * time)
    return np.round(loudness * tones + random.normal(0, 20, len(time))).astype(np.int16)


def blocks(samples: Array) -> Array:
    """Return samples as the input of runs, [blocks, 1600]; silence follows the last sample."""
    return np.pad(samples, (0, -len(samples) % BLOCK)).reshape(-1, BLOCK)


def sound(recordings: Sequence[Array], words: Sequence[str]) -> Array:
    """Return recordings, then spoken words, one after the other. Raises SystemExit without a synthesiser."""
    if words and shutil.which(SYNTHESISER) is None:
        raise SystemExit(f"error: {SYNTHESISER} is not installed: apt-get install {SYNTHESISER}, or give a WAV file")
    return np.concatenate([*recordings, *(say(word) for word in words)])


def main() -> int:
    """Write an array, and a WAV file on request."""
    parser = argparse.ArgumentParser(description="Make blocks of sound for keyword spotting.")
    parser.add_argument("recordings", nargs="*", type=load, metavar="FILE.wav", help="1 channel, 16 bits, 16 kHz")
    parser.add_argument("--say", action="append", default=[], metavar="WORD", help="word to synthesise; repeatable")
    parser.add_argument("--wav", type=Path, help="write the sound as a WAV file too")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE.npy")
    given = parser.parse_args()
    if not (given.recordings or given.say):
        parser.error("expected a file, or --say WORD")
    samples = sound(given.recordings, given.say)
    np.save(given.output, blocks(samples))
    if given.wav:
        with wave.open(str(given.wav), "wb") as file:
            file.setparams((1, 2, RATE, 0, "NONE", ""))
            file.writeframes(samples.astype("<i2").tobytes())
    print(f"{given.output}: {len(blocks(samples))} blocks, {len(samples) / RATE:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())

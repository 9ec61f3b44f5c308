# SPDX-License-Identifier: Apache-2.0
"""The front end of examples/keyword_spotting: C against numpy bit for bit, numpy against TensorFlow."""

import ctypes
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from requirements_support import need

HERE = Path(__file__).resolve().parent
EXAMPLE = HERE.parents[1] / "examples" / "keyword_spotting"
sys.path.insert(0, str(EXAMPLE))
import features  # noqa: E402
import speech  # noqa: E402

from examples import tensorflow_features  # noqa: E402

SCALE, ZERO_POINT = 0.5847029089927673, 83
STRICT = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-Wconversion", "-Wno-sign-conversion"]
SANITIZED = ["-fsanitize=undefined", "-fno-sanitize-recover"]


@pytest.fixture(scope="module")
def operators(tmp_path_factory):
    need("cc")
    library = tmp_path_factory.mktemp("features") / "operators.so"
    command = ["cc", *STRICT, *SANITIZED, "-shared", "-fPIC", EXAMPLE / "operators" / "features.c", "-o", library]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(library))


def address(array):
    return ctypes.c_void_p(array.ctypes.data)


class InC:
    """The operators with their state, as the model calls them."""

    def __init__(self, operators, tables):
        self.operators, self.tables = operators, tables
        self.overlap = np.zeros(320, np.int16)
        self.bands = np.zeros((49, 40), np.uint32)
        self.peaks = np.zeros(10, np.int16)

    def run(self, block):
        t, block = {name: address(array) for name, array in self.tables.items()}, np.ascontiguousarray(block)
        frame, spectrum = np.full(480, 7, np.int16), np.full((512, 2), 7, np.int32)
        peak, found = np.zeros(1, np.int32), np.zeros((49, 10), np.int8)
        state = [address(array) for array in (self.overlap, self.bands, frame, spectrum)]
        self.operators.append_bands(address(block), t["window"], t["twiddles"], t["edges"], t["rising"], *state)
        self.operators.find_peak(address(block), address(self.peaks), address(peak))
        self.operators.quantize_cepstra(
            address(self.bands), address(peak), t["logs"], t["dct"], t["offset"], address(found)
        )
        return found


def sounds():
    random, time = np.random.default_rng(1), np.arange(24000)
    yield "speech-like", speech.noise(2)
    yield "noise", random.normal(0, 3000, 24000)
    yield "quiet", random.normal(0, 1, 24000)
    yield "extremes", random.choice([-32768, 32767], 24000)
    yield "silence", np.zeros(24000)
    yield "lowest", np.full(24000, -32768)
    yield "highest", np.full(24000, 32767)
    yield "square", 32767 * np.sign(np.sin(0.3 * time))
    yield "clicks", time % 3001 == 0
    yield "words", np.concatenate([speech.say("yes"), speech.say("no")]) if speech.shutil.which("espeak-ng") else []


@pytest.mark.parametrize(("name", "sound"), list(sounds()), ids=[name for name, _ in sounds()])
def test_c_equals_numpy_bit_for_bit(operators, name, sound):
    if not len(sound):
        need("espeak-ng")
    tables = features.tables(SCALE, ZERO_POINT)
    reference, subject = features.FrontEnd(tables), InC(operators, tables)
    for number, block in enumerate(np.clip(np.round(sound), -32768, 32767).astype(np.int16).reshape(-1, 1600)):
        expected = reference.run(block)
        np.testing.assert_array_equal(subject.run(block), expected, err_msg=f"{name}, block {number}")
        np.testing.assert_array_equal(subject.bands, reference.bands)


def integer_features(clip):
    front = features.FrontEnd(features.tables(SCALE, ZERO_POINT))
    return [front.run(block) for block in clip.reshape(-1, 1600)][-1]


def test_features_are_those_of_tensorflow():
    """tests/examples/tensorflow_features.py wrote the file with tf.signal."""
    with np.load(HERE / "features_of_tensorflow.npz") as file:
        expected = file["features"]
    for clip, trained in zip(tensorflow_features.clips(), expected, strict=True):
        np.testing.assert_allclose(features.trained_features(clip), trained, rtol=0, atol=1e-4)
        np.testing.assert_array_equal(integer_features(clip), features.quantized(trained, SCALE, ZERO_POINT))


def test_integer_features_of_spoken_words_are_near_those_of_training():
    """In frames that are almost silent many coefficients are at the edge between two steps."""
    need("espeak-ng")
    loud, quiet = [], []
    for word in ("yes", "stop", "left"):
        clip = speech.say(word)
        difference = integer_features(clip) - features.quantized(
            features.trained_features(clip), SCALE, ZERO_POINT
        ).astype(int)
        for frame, row in enumerate(difference):
            (loud if np.abs(clip[320 * frame :][:480]).max() > 32 else quiet).append(row)
    assert np.abs(loud).max() <= 1 and np.count_nonzero(loud) <= 0.005 * np.size(loud)
    assert np.abs(quiet).max() <= 1


def make_audio(*words):
    command = [sys.executable, EXAMPLE / "speech.py", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def write_wav(path, content, channels=1, rate=16000):
    with speech.wave.open(str(path), "wb") as file:
        file.setparams((channels, 2, rate, 0, "NONE", ""))
        file.writeframes(content)


def test_wav_file_becomes_blocks(tmp_path):
    samples = speech.noise(1)[:15000]
    write_wav(tmp_path / "a.wav", samples.astype("<i2").tobytes())
    done = make_audio(tmp_path / "a.wav", "-o", tmp_path / "a.npy")
    assert done.returncode == 0, done.stderr
    found = np.load(tmp_path / "a.npy")
    assert found.shape == (10, 1600) and found.dtype == np.int16
    np.testing.assert_array_equal(found.ravel()[:15000], samples)
    assert not found.ravel()[15000:].any()


def test_other_files_are_rejected(tmp_path):
    write_wav(tmp_path / "stereo.wav", bytes(400), channels=2, rate=44100)
    (tmp_path / "text.wav").write_text("no sound")
    for name, message in (
        ("stereo.wav", "2 channels, 16 bits, 44100 Hz, expected 1 channel, 16 bits, 16000 Hz"),
        ("text.wav", "file does not start with RIFF id"),
        ("none.wav", "none.wav': No such file or directory"),
    ):
        done = make_audio(tmp_path / name, "-o", tmp_path / "a.npy")
        assert done.returncode == 1 and message in done.stderr

# SPDX-License-Identifier: Apache-2.0
"""Clips; as a program, write features_of_tensorflow.npz, their features from tf.signal as in MLPerf Tiny's training.

pip install tensorflow && python tests/examples/tensorflow_features.py
"""

import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "examples" / "keyword_spotting"))
import speech  # noqa: E402


def clips():
    """Return clips of one second, int16 [3, 16000]: tones, noise, and a burst in digital silence."""
    burst = np.zeros(16000, np.int16)
    burst[6000:9000] = speech.noise(1)[6000:9000]
    quiet = np.round(np.random.default_rng(5).normal(0, 30, 16000)).astype(np.int16)
    return np.stack([speech.noise(1), quiet, burst])


def features(clip):
    """Return the features of a clip, float32 [49, 10]."""
    import tensorflow as tf

    samples = tf.cast(clip, tf.float32)
    samples = samples / tf.reduce_max(samples)
    spectra = tf.abs(tf.signal.stft(samples, 480, 320, fft_length=None, window_fn=tf.signal.hann_window))
    weights = tf.signal.linear_to_mel_weight_matrix(40, spectra.shape[-1], 16000, 20.0, 4000.0)
    logs = tf.math.log(tf.tensordot(spectra, weights, 1) + 1e-6)
    return tf.signal.mfccs_from_log_mel_spectrograms(logs)[..., :10].numpy()


if __name__ == "__main__":
    import tensorflow as tf

    found = np.stack([features(clip) for clip in clips()])
    np.savez_compressed(HERE / "features_of_tensorflow.npz", features=found, version=tf.__version__)

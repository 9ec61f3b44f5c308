# SPDX-License-Identifier: Apache-2.0
"""Models that Arm's Vela has compiled for Ethos-U: as .tflite with operators for the processor, or as .npz."""

# SPDX-License-Identifier: Apache-2.0
"""Models that Arm's Vela has compiled for Ethos-U.

Enters: a .tflite or .npz file. Leaves: a graph whose subgraphs for the NPU are operators of the user, and their places
in the arena. Never: the emission of the operators for the processor."""

# SPDX-License-Identifier: Apache-2.0
"""Layers of float32 for every class of processors: geometry, constants, the C for processors without an FPU.

Enters: an operation and the functions in assembly of a class. Leaves: its call, or None where they do not apply.
Never: instructions of a class.
"""

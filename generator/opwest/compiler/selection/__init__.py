# SPDX-License-Identifier: Apache-2.0
"""The choice of a variant for each layer: costs from a table of measurements, exact under a limit of flash.

Enters: a program, limits, measurements. Leaves: a program and its variants for each class of processors. Never: C.
"""

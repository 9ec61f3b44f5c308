# SPDX-License-Identifier: Apache-2.0
"""Programs of Arm Ethos-U NPUs.

Enters: a custom operator payload of Vela. Leaves: its operations, its accesses to memory, its faults. Never: a run.
"""

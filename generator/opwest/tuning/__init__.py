# SPDX-License-Identifier: Apache-2.0
"""Candidates of operators, run in QEMU and on boards: results, instructions, cycles."""

# SPDX-License-Identifier: Apache-2.0
"""Candidates of operators, measured in QEMU and on boards.

Enters: the operations of an import. Leaves: cycles, bytes of code, a table of costs. Never: the choice of a variant."""

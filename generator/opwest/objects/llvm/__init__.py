# SPDX-License-Identifier: Apache-2.0
"""LLVM IR as a source of operators.

Enters: bitcode or text (`api`). Leaves: its facts, contradictions to a target, objects. Never: llvmlite in this
process, because damaged bitcode can abort LLVM; `worker` runs in a child process.
"""

# SPDX-License-Identifier: Apache-2.0
"""The files that a manifest names: objects, sources, LLVM IR, headers, their targets; the state of a resolution.

Enters: located YAML and paths. Leaves: facts about files, and faults. Never: operators, tensors, steps.
"""

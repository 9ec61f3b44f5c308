# SPDX-License-Identifier: Apache-2.0
"""The metadata module of a model as LLVM IR.

Enters: a model, its plan, a target. Leaves: textual IR, equivalent to the C sources. Never: an object."""

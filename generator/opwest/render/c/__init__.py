# SPDX-License-Identifier: Apache-2.0
"""The C sources of a model.

Enters: a model, its plan, its tables. Leaves: C. Never: LLVM IR."""

# SPDX-License-Identifier: Apache-2.0
"""The constant data of a model.

Enters: a model and its plan. Leaves: definitions of values of structs, which c/ and llvm/ print. Never: text."""

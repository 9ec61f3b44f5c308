# SPDX-License-Identifier: Apache-2.0
"""The integer graph: operations with exact semantics, between the meaning of a model and its C.

Enters: the operations of a model. Leaves: a program, verified. Never: C, the format of a model.
"""

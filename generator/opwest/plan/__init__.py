# SPDX-License-Identifier: Apache-2.0
"""The plan of a model: the order of its steps, the waits for devices, and the address of every tensor.

Enters: a checked model. Leaves: the model with ordered steps, and a verified plan. Never: C, a file of a project."""

# SPDX-License-Identifier: Apache-2.0
"""The stages of an import of a trained model, in a child process.

Enters: a model file. Leaves: a directory with a manifest, operators, constants and golden vectors. Never: a directory
whose manifest `opwest check` refuses."""

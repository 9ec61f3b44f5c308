# SPDX-License-Identifier: Apache-2.0
"""The operator compiler: from a typed graph to operators in C, constants and a manifest.

Enters: a graph. Leaves: the files of a directory that a person could have written. Never: the format of a model."""

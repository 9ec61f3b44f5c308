# SPDX-License-Identifier: Apache-2.0
"""The reader of TFLite files.

Enters: the bytes of a file as hostile input. Leaves: a graph for each signature. Never: arithmetic of operators.
"""

# SPDX-License-Identifier: Apache-2.0
"""The proof of an import.

Enters: the graph as it was read, and the planned manifest. Leaves: an error that names the first wrong stage, or
nothing. Never: the emitted C code, or the arithmetic of kernels."""

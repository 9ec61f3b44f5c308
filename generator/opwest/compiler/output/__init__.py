# SPDX-License-Identifier: Apache-2.0
"""Programs as C: a variant for each operation, calls of functions, the file of operators."""

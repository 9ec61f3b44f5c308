# SPDX-License-Identifier: Apache-2.0
"""Variants for processors with the vector extension (Cortex-M55, M85)."""

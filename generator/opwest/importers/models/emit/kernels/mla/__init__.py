# SPDX-License-Identifier: Apache-2.0
"""Variants for processors of extensions (Cortex-M3)."""

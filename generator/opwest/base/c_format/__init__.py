# SPDX-License-Identifier: Apache-2.0
"""Zephyr's format of C source text."""

from opwest.base.c_format.fast import format_c

__all__ = ["format_c"]

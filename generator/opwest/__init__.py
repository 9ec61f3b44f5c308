# SPDX-License-Identifier: Apache-2.0
"""opwest: compiled operators and a device manifest in, a complete Zephyr application out."""

__version__ = "0.2.0"

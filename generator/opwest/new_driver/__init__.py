# SPDX-License-Identifier: Apache-2.0
"""A new accelerator driver: an external Zephyr module from the templates of this package."""

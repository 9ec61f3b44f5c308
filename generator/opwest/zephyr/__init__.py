# SPDX-License-Identifier: Apache-2.0
"""Differences between versions of Zephyr, and facts about an installed workspace."""

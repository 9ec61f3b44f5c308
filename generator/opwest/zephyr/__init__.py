# SPDX-License-Identifier: Apache-2.0
"""Differences between versions of Zephyr, and facts about an installed workspace.

Enters: models and the name of a board. Leaves: diagnostics, targets, options. Never: the text of an emitted file."""

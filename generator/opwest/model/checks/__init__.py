# SPDX-License-Identifier: Apache-2.0
"""Checks of a model that need more than one key: the link, signatures, stacks, memory of calls.

Enters: parts of a model, facts about objects. Leaves: errors and derived facts. Never: emitted text."""

# SPDX-License-Identifier: Apache-2.0
"""The keys of a manifest as parts of a model, with every fault at its place.

Enters: located YAML, facts about objects. Leaves: a Model. Never: plans, emitted text."""

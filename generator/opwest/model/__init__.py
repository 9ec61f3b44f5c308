# SPDX-License-Identifier: Apache-2.0
"""The meaning of a manifest.

Enters: located YAML, facts about objects. Leaves: a checked, frozen Model, and every fault at its place.
Never: plans, emitted text."""

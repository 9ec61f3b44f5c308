# SPDX-License-Identifier: Apache-2.0
"""Drafting a manifest from objects at hand, with marks where they do not tell: `opwest init`."""

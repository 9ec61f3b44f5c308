# SPDX-License-Identifier: Apache-2.0
"""Resolve a manifest and the facts about its objects to a checked, frozen `Model`."""

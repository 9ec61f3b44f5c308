# SPDX-License-Identifier: Apache-2.0
"""Bundles: models that firmware replaces in the field. docs/bundle-format.md defines the file."""

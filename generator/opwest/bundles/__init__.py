# SPDX-License-Identifier: Apache-2.0
"""Bundles: models that firmware replaces in the field. docs/contributing/bundle-format.md defines the file.

Enters: a manifest, or the file of a bundle. Leaves: files of bundles, and jobs on a board.
Never: the keys of a manifest."""

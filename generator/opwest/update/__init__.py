# SPDX-License-Identifier: Apache-2.0
"""Regenerate projects from their manifests and merge the user's changes."""

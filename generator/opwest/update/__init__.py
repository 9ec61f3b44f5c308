# SPDX-License-Identifier: Apache-2.0
"""Regeneration: projects made again from their manifests, with what the user changed since kept."""

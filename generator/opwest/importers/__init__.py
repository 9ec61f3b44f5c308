# SPDX-License-Identifier: Apache-2.0
"""Importers: what other compilers made becomes a folder with a manifest, operators, constants and golden vectors."""

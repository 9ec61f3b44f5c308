# SPDX-License-Identifier: Apache-2.0
"""Importers: convert the output of other compilers to a manifest, operators, constants and golden vectors."""

# SPDX-License-Identifier: Apache-2.0
"""Draft a manifest from objects, with marks for missing information: `opwest init`."""

# SPDX-License-Identifier: Apache-2.0
"""Packing: blocks with sizes, alignments and lifetimes get offsets, and a proof that no two collide."""

# SPDX-License-Identifier: Apache-2.0
"""Limits of an import. Real models have up to 200 relevant files and 4 MiB."""

MEMBERS = 20_000
MEMBER_BYTES = 64 << 20
KEPT_BYTES = 128 << 20
HEADER_BYTES = 1 << 16
"""The maximum size of a pax header, or of a long name in a tar."""

JSON_BYTES = 16 << 20
TENSORS = 4096
DIMENSIONS = 16
ELEMENTS = 1 << 30

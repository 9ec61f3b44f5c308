# SPDX-License-Identifier: Apache-2.0
"""The memory plan: the offset of every buffer in its pool, verified to be free of overlaps."""

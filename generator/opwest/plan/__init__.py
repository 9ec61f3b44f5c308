# SPDX-License-Identifier: Apache-2.0
"""The memory plan: where in its pool every intermediate tensor lives, and a proof that no two collide."""

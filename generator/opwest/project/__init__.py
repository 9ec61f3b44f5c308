# SPDX-License-Identifier: Apache-2.0
"""The state of a project on disk: its origin, merges, remarks for the user, storing it."""

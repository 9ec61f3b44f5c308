# SPDX-License-Identifier: Apache-2.0
"""What a project on the disk remembers and what its user is told: origin, merges, remarks, storing it."""

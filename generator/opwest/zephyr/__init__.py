# SPDX-License-Identifier: Apache-2.0
"""What differs between versions of Zephyr, and what a workspace at hand knows."""

# SPDX-License-Identifier: Apache-2.0
"""Running a generated application on this machine, without Zephyr."""

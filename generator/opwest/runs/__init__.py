# SPDX-License-Identifier: Apache-2.0
"""Run a generated application on this machine, without Zephyr."""

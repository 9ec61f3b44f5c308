# SPDX-License-Identifier: Apache-2.0
"""Run a generated application under Zephyr: on a board, in QEMU or on native_sim."""

# SPDX-License-Identifier: Apache-2.0
"""Zephyr's scripts in builds of the tests, without garbage collection: they are short, and it is 10 % of their time."""

import gc

gc.disable()

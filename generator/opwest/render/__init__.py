# SPDX-License-Identifier: Apache-2.0
"""Rendering: a checked, planned model becomes files, as a pure function of its arguments."""

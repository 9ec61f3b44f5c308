# SPDX-License-Identifier: Apache-2.0
"""Runs of a generated application on this machine, in QEMU and on boards.

Enters: a project and the options of a command. Leaves: outputs, differences, measurements.
Never: the text of a manifest."""

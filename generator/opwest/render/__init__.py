# SPDX-License-Identifier: Apache-2.0
"""The text of all files of a project.

Enters: checked models, their plans, templates. Leaves: {path: bytes}. Never: a file, a process, a date."""

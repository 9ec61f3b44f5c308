# SPDX-License-Identifier: Apache-2.0
"""`opwest doctor`: what this machine has, what each feature of opwest needs, and how to install what is missing.

Enters: the versions that installed programs and packages print. Leaves: the state of each feature with a command that
installs what it lacks. Never: an installation, or a change of the machine."""

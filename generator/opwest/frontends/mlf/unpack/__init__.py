# SPDX-License-Identifier: Apache-2.0
"""The main function of an ahead-of-time executor as steps.

Enters: the C sources, and the meaning of main's parameters. Leaves: operators, steps and constants in the draft of the
manifest, and the changed sources. Never: an assumption about memory that the C code does not show."""

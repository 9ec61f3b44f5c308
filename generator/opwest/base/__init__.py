# SPDX-License-Identifier: Apache-2.0
"""What all packages use: diagnostics, timing, paths, processes, opwest's own files.

Enters: nothing of opwest. Leaves: values and texts. Never: the meaning of a manifest."""

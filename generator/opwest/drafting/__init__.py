# SPDX-License-Identifier: Apache-2.0
"""`opwest init` and `opwest new-driver`: drafts of files that a person completes.

Enters: objects, sources and their debug information, or the name of a device. Leaves: a manifest with placeholders for
missing information, or a driver. Never: a guess that the draft does not mark."""

# SPDX-License-Identifier: Apache-2.0
"""The text of manifests: YAML 1.2 with positions, the JSON Schema, .npy files; the writer of manifests.

Enters: files. Leaves: located values and faults, or the lines of a manifest. Never: the meaning of the keys."""

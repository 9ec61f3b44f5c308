# SPDX-License-Identifier: Apache-2.0
"""Read the device manifest: YAML 1.2 with positions, checked against the JSON Schema."""

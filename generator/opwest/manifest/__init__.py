# SPDX-License-Identifier: Apache-2.0
"""Reading the device manifest: YAML 1.2 with positions, then the shape that the schema allows."""

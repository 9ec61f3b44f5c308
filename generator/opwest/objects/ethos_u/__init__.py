# SPDX-License-Identifier: Apache-2.0
"""Programs of Arm Ethos-U NPUs: the meaning of the custom operator payload, and its check."""

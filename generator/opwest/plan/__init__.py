# SPDX-License-Identifier: Apache-2.0
"""The plan of a model: the order of its steps, the waits for devices, and the address of every tensor."""

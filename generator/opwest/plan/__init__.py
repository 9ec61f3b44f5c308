# SPDX-License-Identifier: Apache-2.0
"""The plan of a model: the order of its steps, where devices are waited for, and where every tensor lives."""

# SPDX-License-Identifier: Apache-2.0
"""The integer graph: operations with exact semantics, between the meaning of a model and its C."""

# SPDX-License-Identifier: Apache-2.0
"""The typed graph of a model: what the readers of all formats produce."""

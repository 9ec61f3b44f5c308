# SPDX-License-Identifier: Apache-2.0
"""The types of a model: frozen values, which all later stages read.

Enters: values of readers. Leaves: Model and its parts. Never: YAML, files, messages about keys."""

# SPDX-License-Identifier: Apache-2.0
"""A graph without what its results do not require: constants computed at import, operators absorbed by others."""

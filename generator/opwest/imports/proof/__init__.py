# SPDX-License-Identifier: Apache-2.0
"""The proof of an import: the graph as it was read, against the manifest that the import wrote."""

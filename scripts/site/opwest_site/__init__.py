# SPDX-License-Identifier: Apache-2.0
"""The Sphinx extension of the site: addresses, navigation, what the pages contain beside Markdown, source files."""

from __future__ import annotations

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

from . import builder, markup, navigation, sources


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register all parts."""
    for part in (builder, navigation, markup, sources):
        part.setup(app)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": False}

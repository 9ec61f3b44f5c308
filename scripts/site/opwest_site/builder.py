# SPDX-License-Identifier: Apache-2.0
"""The builder of the site: HTML pages at the addresses of addresses.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder

from .addresses import address


class SiteBuilder(StandaloneHTMLBuilder):
    """HTML pages with short addresses. Its index of the search contains addresses, so every build is a whole build."""

    name = "site"

    def get_target_uri(self, docname: str, typ: str | None = None) -> str:
        """Return the address of a page relative to the root."""
        return super().get_target_uri(address(docname), typ)

    def get_output_path(self, page_name: str, /) -> Path:
        """Return the file of a page."""
        return super().get_output_path(address(page_name))

    def dump_search_index(self) -> None:
        """Write the index of the search with the addresses of pages."""
        assert self.indexer is not None
        freeze = self.indexer.freeze

        def with_addresses() -> dict[str, Any]:
            frozen = freeze()
            return frozen | {"docnames": [address(name) for name in frozen["docnames"]]}

        self.indexer.freeze = with_addresses  # type: ignore[method-assign]
        super().dump_search_index()


def setup(app: Sphinx) -> None:
    """Register the builder."""
    app.add_builder(SiteBuilder)

# SPDX-License-Identifier: Apache-2.0
"""The builder of the site: HTML pages at the addresses of addresses.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder

from .addresses import address
from .ranking import factors, table, weights_of_page


class SiteBuilder(StandaloneHTMLBuilder):
    """HTML pages with short addresses. Its index of the search contains addresses, so every build is a whole build."""

    name = "site"

    def init(self) -> None:
        """Prepare the weights of the search, by page."""
        super().init()
        self.weights: dict[str, dict[str, int]] = {}

    def index_page(self, pagename: str, doctree: nodes.document, title: str) -> None:
        """Add a page to the index of the search."""
        super().index_page(pagename, doctree, title)
        if self.indexer is not None:
            self.weights[pagename] = weights_of_page(doctree, self.indexer)

    def get_target_uri(self, docname: str, typ: str | None = None) -> str:
        """Return the address of a page relative to the root."""
        return super().get_target_uri(address(docname), typ)

    def get_output_path(self, page_name: str, /) -> Path:
        """Return the file of a page."""
        return super().get_output_path(address(page_name))

    def dump_search_index(self) -> None:
        """Write the index of the search with the addresses of pages, the weights of terms and the factors of pages."""
        assert self.indexer is not None
        freeze = self.indexer.freeze

        def with_addresses() -> dict[str, Any]:
            frozen = freeze()
            names: list[str] = list(frozen["docnames"])
            more = {"weights": table(names, self.weights), "factors": factors(names, Path(self.srcdir))}
            return frozen | more | {"docnames": [address(name) for name in names]}

        self.indexer.freeze = with_addresses  # type: ignore[method-assign]
        super().dump_search_index()


def setup(app: Sphinx) -> None:
    """Register the builder."""
    app.add_builder(SiteBuilder)

# SPDX-License-Identifier: Apache-2.0
"""The addresses of pages.

docs/README.md is index.html, docs/x.md is x.html, and examples/x/README.md is examples/x/index.html.
"""

from __future__ import annotations

NAMES = {"README": "overview"}
"""Pages whose address follows no rule: README.md is not the index of the site."""


def address(docname: str) -> str:
    """Return the address of a page, without its suffix."""
    if docname in NAMES:
        return NAMES[docname]
    name = docname.removeprefix("docs/")
    folder, slash, last = name.rpartition("/")
    if last == "README":
        return f"{folder}{slash}index"
    return name.lower()

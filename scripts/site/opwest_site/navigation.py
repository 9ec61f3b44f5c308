# SPDX-License-Identifier: Apache-2.0
"""The navigation of the site: the sections and tables of the index page, docs/README.md.

A section is a heading of level 2. Each row of its tables that begins with a link to a page is an entry. A page
without an entry is a warning of Sphinx, which `make docs` treats as an error.
"""

from __future__ import annotations

import os
import posixpath
import re
from dataclasses import dataclass

from sphinx.application import Sphinx

PLACEHOLDER = "URL_OF_THIS_REPOSITORY"
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_ROW = re.compile(r"^\| \[([^\]]+)\]\(([^)#]+)\) \|", re.MULTILINE)


@dataclass(frozen=True)
class Section:
    """A section: its title, and the label and path (relative to the repository) of each page."""

    title: str
    pages: tuple[tuple[str, str], ...]


def sections(text: str, folder: str = "docs") -> list[Section]:
    """Return the sections of an index page in `folder` that contain pages."""
    parts = _SECTION.split(text)
    found = []
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        rows = [(label, posixpath.normpath(posixpath.join(folder, path))) for label, path in _ROW.findall(body)]
        if rows:
            found.append(Section(title.strip(), tuple(rows)))
    return found


def tree(section: Section) -> str:
    """Return a section as a hidden `toctree` of MyST."""
    rows = "".join(f"{label} </{posixpath.splitext(path)[0]}>\n" for label, path in section.pages)
    return f"\n```{{toctree}}\n:hidden:\n:maxdepth: 1\n:caption: {section.title}\n\n{rows}```\n"


def read_source(app: Sphinx, docname: str, content: list[str]) -> None:
    """Add the navigation to the index page; set the address of the repository."""
    if repository := os.environ.get("REPOSITORY"):
        content[0] = content[0].replace(PLACEHOLDER, repository)
    if docname == app.config.root_doc:
        content[0] += "".join(map(tree, sections(content[0])))


def setup(app: Sphinx) -> None:
    """Register the handler."""
    app.connect("source-read", read_source)

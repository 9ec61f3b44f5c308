# SPDX-License-Identifier: Apache-2.0
"""The navigation of the site: the sections and tables of docs/README.md and of the contributors' index.

A section is a heading of level 2. Each row of its tables that begins with a link to a page is an entry. A page
without an entry is a warning of Sphinx, which `make docs` treats as an error. The sidebar shows the sections for
users; a page of another section shows that section below them.
"""

from __future__ import annotations

import os
import posixpath
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

PLACEHOLDER = "URL_OF_THIS_REPOSITORY"
INDEXES = ("docs/README", "docs/contributing/README")
"""The pages whose tables are the navigation: that of users, that of contributors."""
APART = ("Examples", "More")
"""Sections of the users' index that the sidebar does not show."""
FOLDED = ("Compilers",)
"""Sections of which the sidebar shows the first page, and the others beside one of them."""
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_ROW = re.compile(r"^\| \[([^\]]+)\]\(([^)#]+)\) \|", re.MULTILINE)


@dataclass(frozen=True)
class Section:
    """A section: its title, and the label and path (relative to the repository) of each page."""

    title: str
    pages: tuple[tuple[str, str], ...]

    @property
    def docnames(self) -> tuple[str, ...]:
        """The names of its pages in Sphinx."""
        return tuple(posixpath.splitext(path)[0] for _, path in self.pages)


def sections(text: str, folder: str = "docs") -> list[Section]:
    """Return the sections of an index page in `folder` that contain pages."""
    parts = _SECTION.split(text)
    found = []
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        rows = [(label, posixpath.normpath(posixpath.join(folder, path))) for label, path in _ROW.findall(body)]
        if rows:
            found.append(Section(title.strip(), tuple(rows)))
    return found


def all_sections(root: Path) -> list[tuple[Section, bool]]:
    """Return the sections of all indexes in a repository, each with whether the sidebar always shows it."""
    found = []
    for index in INDEXES:
        path = root / f"{index}.md"
        if path.is_file():
            for section in sections(path.read_text(encoding="utf-8"), posixpath.dirname(index)):
                found.append((section, index == INDEXES[0] and section.title not in APART))
    return found


def users_pages(root: Path) -> set[str]:
    """Return the names of the pages for users: those of the sidebar."""
    return {INDEXES[0], *(name for section, shown in all_sections(root) if shown for name in section.docnames)}


def tree(section: Section) -> str:
    """Return a section as a hidden `toctree` of MyST."""
    rows = "".join(f"{label} </{posixpath.splitext(path)[0]}>\n" for label, path in section.pages)
    return f"\n```{{toctree}}\n:hidden:\n:maxdepth: 1\n:caption: {section.title}\n\n{rows}```\n"


def read_source(app: Sphinx, docname: str, content: list[str]) -> None:
    """Add the navigation to the index pages; set the address of the repository."""
    if repository := os.environ.get("REPOSITORY"):
        content[0] = content[0].replace(PLACEHOLDER, repository)
    if docname in INDEXES:
        content[0] += "".join(map(tree, sections(content[0], posixpath.dirname(docname))))


def add_sidebar(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: object) -> None:
    """Give the sections of the sidebar to the template of a page."""
    found = all_sections(Path(app.srcdir))
    apart = [section for section, shown in found if not shown and pagename in section.docnames]
    titles = [section.title for section, _ in found]
    context["opwest_examples"] = "Examples" in titles
    context["opwest_contributors"] = INDEXES[1] in app.env.found_docs

    def rows(section: Section) -> list[tuple[str, str, bool]]:
        pages = list(zip(section.pages, section.docnames, strict=True))
        if section.title in FOLDED and pagename not in section.docnames:
            pages = pages[:1]
        return [(label, name, name == pagename) for (label, _), name in pages]

    shown_here = [*(section for section, shown in found if shown), *apart]
    context["opwest_sections"] = [(section.title, rows(section)) for section in shown_here]


def setup(app: Sphinx) -> None:
    """Register the handlers."""
    app.connect("source-read", read_source)
    app.connect("html-page-context", add_sidebar)

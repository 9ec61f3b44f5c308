# SPDX-License-Identifier: Apache-2.0
"""Checks of a built site: links, anchors, what a browser loads, the structure of the HTML.

Sphinx checks the links of Markdown. These checks include the links of templates and of the pages of source files.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())
LOADS = {
    "img": ("src", "srcset"),
    "script": ("src",),
    "source": ("src", "srcset"),
    "iframe": ("src",),
    "link": ("href",),
}
"""The attributes whose addresses a browser loads without a click. SVG in the page has none here."""
_CSS = re.compile(r"""(?:url\(\s*["']?|@import\s+["'])([^"')\s]+)""")
PARTS_OF_THE_THEME = ("_static/webpack-macros.html",)


@dataclass
class Document(HTMLParser):
    """The links, loaded addresses, anchors and faults of one page."""

    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    ids: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    headings: list[int] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    title: str = ""
    _open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_comment(self, data: str) -> None:
        """Record a comment of a page; the theme has others."""
        if "article" in self._open:
            self.comments.append(data.strip())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record an element."""
        values = {name: value or "" for name, value in attrs}
        if tag not in VOID:
            self._open.append(tag)
        if repeated := [name for name, count in Counter(name for name, _ in attrs).items() if count > 1]:
            self.faults.append(f"repeated attribute {repeated[0]!r} of <{tag}>")
        if "id" in values:
            self.ids[values["id"]] += 1
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag == "img" and "alt" not in values:
            self.faults.append(f"image without alt: {values.get('src')}")
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        for name in LOADS.get(tag, ()):
            if name in values and values.get("rel") not in ("canonical", "next", "prev", "index", "search"):
                self.loads.append(values[name])
        self.loads += _CSS.findall(values.get("style", ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record an element without content."""
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        """Record the end of an element; a fault if another one is open."""
        if tag in VOID:
            return
        if self._open and self._open[-1] == tag:
            self._open.pop()
        else:
            self.faults.append(
                f"</{tag}> at line {self.getpos()[0]} ends <{self._open[-1] if self._open else 'nothing'}>"
            )

    def handle_data(self, data: str) -> None:
        """Record the title."""
        if self._open and self._open[-1] == "title" and "svg" not in self._open:
            self.title += data

    def unclosed(self) -> list[str]:
        """Return the elements that are still open."""
        return self._open


def read(path: Path) -> Document:
    """Return the content of a page."""
    document = Document()
    document.feed(path.read_text(encoding="utf-8"))
    document.close()
    return document


def is_external(address: str) -> bool:
    """Whether an address is that of another server."""
    parts = urlsplit(address)
    return bool(parts.netloc) or parts.scheme not in ("", "data")


def faults_of_structure(document: Document) -> list[str]:
    """Return the faults inside of one page."""
    found = list(document.faults)
    found += [f"duplicate id {name!r}" for name, count in document.ids.items() if count > 1]
    found += [f"<{tag}> is not closed" for tag in document.unclosed()]
    if not document.title.strip():
        found.append("no title")
    if document.headings.count(1) != 1:
        found.append(f"{document.headings.count(1)} headings of level 1, expected 1")
    found += [f"comment {text[:40]!r}" for text in document.comments]
    return found


def faults_of_links(root: Path, page: Path, document: Document, pages: dict[Path, Document]) -> list[str]:
    """Return the broken links and anchors of a page, and the resources it loads from elsewhere or that do not exist."""
    found = []
    for address in document.links:
        parts = urlsplit(address)
        if is_external(address):
            continue
        target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
        target = target / "index.html" if target.is_dir() else target
        if not target.is_relative_to(root) or not target.is_file():
            found.append(f"broken link {address!r}")
        elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
            found.append(f"broken anchor {address!r}")
    for address in document.loads:
        if is_external(address):
            found.append(f"loads {address!r} from another server")
        elif not address.startswith("data:") and not (page.parent / unquote(urlsplit(address).path)).is_file():
            found.append(f"loads {address!r}, which does not exist")
    return found


def faults(root: Path) -> list[str]:
    """Return all faults of a site, each with its page."""
    root = root.resolve()
    paths = [
        path for path in sorted(root.rglob("*.html")) if path.relative_to(root).as_posix() not in PARTS_OF_THE_THEME
    ]
    pages = {path: read(path) for path in paths}
    found = []
    for path, document in pages.items():
        name = path.relative_to(root).as_posix()
        found += [f"{name}: {fault}" for fault in faults_of_structure(document)]
        found += [f"{name}: {fault}" for fault in faults_of_links(root, path, document, pages)]
    for path in sorted(root.rglob("*.css")):
        external = [address for address in _CSS.findall(path.read_text(encoding="utf-8")) if is_external(address)]
        found += [f"{path.relative_to(root).as_posix()}: loads {address!r} from another server" for address in external]
    return found

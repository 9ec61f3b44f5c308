# SPDX-License-Identifier: Apache-2.0
"""Links from pages to other files and directories of the repository: each such file is a page of the site.

So the links also work without a network, and no address of a repository is required.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from markupsafe import escape
from pygments.lexers import get_lexer_for_filename
from pygments.util import ClassNotFound
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform

FOLDER = "source"
"""The directory of these pages on the site."""
REFERENCE = "opwest-source"


def target_of(docname: str, link: str) -> str:
    """Return the path of a link relative to the repository."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(docname), link.partition("#")[0]))


class Links(SphinxTransform):
    """Make the links to files and directories references to their pages."""

    default_priority = 202

    def apply(self, **_: Any) -> None:
        """Replace each link."""
        srcdir = Path(self.env.srcdir)
        for node in list(self.document.findall(addnodes.download_reference)):
            self._refer(node, target_of(self.env.docname, node["reftarget"]))
        for node in list(self.document.findall(addnodes.pending_xref)):
            if node.get("reftype") != "myst" or node.get("refdomain") == "doc":
                continue
            target = target_of(self.env.docname, node["reftarget"])
            if not node["reftarget"].startswith("#") and (srcdir / target).is_dir():
                readme = f"{target}/README"
                if readme in self.env.found_docs:
                    node["refdomain"], node["reftarget"], node["reftargetid"] = "doc", readme, None
                else:
                    self._refer(node, target)

    def _refer(self, node: nodes.Element, target: str) -> None:
        reference = addnodes.pending_xref(
            "", *node.children, refdomain="", reftype=REFERENCE, reftarget=target, refdoc=self.env.docname
        )
        reference.source, reference.line = node.source, node.line
        node.replace_self(reference)


def page_of(target: str) -> str:
    """Return the name of the page of a file or a directory."""
    return f"{FOLDER}/{target}"


def resolve(app: Sphinx, env: BuildEnvironment, node: nodes.Element, text: nodes.Element) -> nodes.reference | None:
    """Return the reference to the page of a file, and record the file."""
    if node.get("reftype") != REFERENCE:
        return None
    target = node["reftarget"]
    if not hasattr(app.builder, "opwest_sources"):
        app.builder.opwest_sources = set()  # type: ignore[attr-defined]
    app.builder.opwest_sources.add(target)  # type: ignore[attr-defined]
    uri = app.builder.get_relative_uri(node["refdoc"], page_of(target))
    return nodes.reference("", "", text, internal=True, refuri=uri)


def files_of(folder: Path) -> Iterator[Path]:
    """Yield the text files of a directory, sorted."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not any(part == "__pycache__" or part.startswith(".") for part in path.parts):
            yield path


def language(name: str) -> str:
    """Return the lexer of a file."""
    try:
        return get_lexer_for_filename(name.removesuffix(".jinja")).aliases[0]
    except ClassNotFound:
        return "none"


def pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield a page for each file that pages link to, and for each directory and its files."""
    root = Path(app.srcdir)
    wanted: set[str] = set(getattr(app.builder, "opwest_sources", ()))
    folders = sorted(target for target in wanted if (root / target).is_dir())
    for target in folders:
        names = [path.relative_to(root).as_posix() for path in files_of(root / target)]
        wanted.update(names)
        rows = "".join(
            f'<li><a href="{app.builder.get_relative_uri(page_of(target), page_of(name))}">'
            f"{escape(posixpath.relpath(name, target))}</a></li>"
            for name in names
        )
        yield page_of(target), _context(target, f"<ul>{rows}</ul>"), "page.html"
    for target in sorted(wanted.difference(folders)):
        text = (root / target).read_text(encoding="utf-8")
        code = app.builder.highlighter.highlight_block(text, language(posixpath.basename(target)))  # type: ignore[attr-defined]
        yield page_of(target), _context(target, f'<div class="highlight-source">{code}</div>'), "page.html"


def _context(target: str, body: str) -> dict[str, Any]:
    title = str(escape(target))
    return {"parents": [], "title": title, "body": f"<section><h1>{title}</h1>{body}</section>"}


def setup(app: Sphinx) -> None:
    """Register the transform and the pages."""
    app.add_transform(Links)
    app.connect("missing-reference", resolve)
    app.connect("html-collect-pages", pages)

# SPDX-License-Identifier: Apache-2.0
"""What pages contain beside Markdown: comments, `<picture>`, tables without a header, Zephyr's references."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

from docutils import nodes
from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

logger = logging.getLogger(__name__)
_COMMENTS = re.compile(r"(\s*<!--.*?-->)*\s*", re.DOTALL)


class Pictures(HTMLParser):
    """The images of the `<picture>` elements of a text: (media, attributes of the image) for each."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.variants: list[tuple[str, str]] = []
        self.image: dict[str, str] = {}
        self.others: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record an element."""
        values = {name: value or "" for name, value in attrs}
        if tag == "source":
            self.variants.append((values.get("media", ""), values.get("srcset", "")))
        elif tag == "img":
            self.image = values
        elif tag != "picture":
            self.others.append(tag)


def classes(media: str, has_narrow: bool) -> list[str]:
    """Return the classes that select an image like its media query; the site can be dark on a light system."""
    theme = "only-dark" if "prefers-color-scheme: dark" in media else "only-light"
    width = "only-narrow" if "max-width" in media else "only-wide"
    return [theme, width] if has_narrow else [theme]


def picture(text: str) -> list[nodes.image] | None:
    """Return the images of a `<picture>`, each with the classes that select it; None for other elements."""
    parsed = Pictures(text)
    if parsed.others or not parsed.image:
        return None
    variants = [*parsed.variants, ("", parsed.image["src"])]
    has_narrow = any("max-width" in media for media, _ in variants)
    found = []
    for media, uri in variants:
        image = nodes.image(uri=uri, alt=parsed.image.get("alt", ""), classes=classes(media, has_narrow))
        if "width" in parsed.image:
            image["width"] = parsed.image["width"]
        found.append(image)
    return found


class Elements(SphinxTransform):
    """Remove comments; make images of pictures. Other elements of HTML are not in use and are warnings."""

    default_priority = 200

    def apply(self, **_: Any) -> None:
        """Replace each node of HTML."""
        for node in list(self.document.findall(nodes.raw)):
            if node.get("format") != "html":
                continue
            text = node.astext()
            if _COMMENTS.fullmatch(text):
                node.parent.remove(node)
            elif images := picture(text):
                paragraph = nodes.paragraph("", "", *images, classes=["picture"])
                node.replace_self(paragraph)
            else:
                logger.warning("HTML element: use Markdown: %s", text.strip()[:60], location=node)


class Headers(SphinxTransform):
    """Remove the headers of tables whose header cells are empty: Markdown has no tables without a header."""

    default_priority = 201

    def apply(self, **_: Any) -> None:
        """Replace each header."""
        for head in list(self.document.findall(nodes.thead)):
            if not head.astext().strip():
                head.parent.remove(head)


def label_of_zephyr(app: Sphinx, env: BuildEnvironment, node: nodes.Element, text: nodes.Element) -> Any:
    """Resolve a reference to a label of Zephyr's documentation as text: that page is written for Zephyr's tree."""
    if node.get("refdoc") == "docs/contributing/zephyr-external-module" and node.get("reftype") == "ref":
        return text
    return None


def setup(app: Sphinx) -> None:
    """Register the transforms."""
    app.add_transform(Elements)
    app.add_transform(Headers)
    app.connect("missing-reference", label_of_zephyr)
    app.add_lexer("mlir", TextLexer)  # Pygments has none

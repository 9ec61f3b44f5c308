# SPDX-License-Identifier: Apache-2.0
"""The weights of the search: how much a page is about a term, and which pages are for users.

Sphinx's index contains only whether a page has a term. The weight of a term in a page counts its occurrences, and more
if it is in the title, in a heading or in the text before the first heading. static/ranking.js computes the order.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.search import IndexBuilder

from .navigation import users_pages

TITLE, HEADING, SUBHEADING, INTRODUCTION = 12, 6, 4, 3
MOST_OF_COUNT = 6
"""The weight of many occurrences is at most that of a heading."""
REFERENCES = ("docs/command-line", "docs/manifest")
"""Pages that mention everything: their factor is 0.7."""
OTHERS = {"examples": 0.6, "docs/contributing": 0.35, "": 0.25}
"""Factors of pages that are not for users, by the beginning of their names: those of users have 1."""
_WORD = re.compile(r"\w+")
_OPTION = re.compile(r"(?<!\w)--[a-z][a-z-]*[a-z]")
_HYPHENATED = re.compile(r"(?<![A-Za-z])[A-Za-z]+(?:-[A-Za-z]+)+(?!\w)")


def weights_of_page(doctree: nodes.document, index: IndexBuilder) -> dict[str, int]:
    """Return the terms of a page whose weight is more than 1, that of a single occurrence in its text.

    Terms that are not in Sphinx's index: options (--fail-on), and hyphenated words as one word (rollback).
    """
    counts: Counter[str] = Counter()
    places: Counter[str] = Counter()
    for text in doctree.findall(nodes.Text):
        words = _WORD.findall(text.astext()) + [one.replace("-", "") for one in _HYPHENATED.findall(text.astext())]
        terms = [index.lang.stem(word.lower()) for word in words if index.lang.word_filter(word)]
        terms += _OPTION.findall(text.astext())
        counts.update(terms)
        best = _place(text)
        for term in terms:
            places[term] = max(places[term], best)
    found = {term: places[term] + min(MOST_OF_COUNT, round(1.5 * math.log2(count))) for term, count in counts.items()}
    return {term: weight + 1 for term, weight in found.items() if weight > 0 or term.startswith("--")}


def _place(text: nodes.Text) -> int:
    """Return what the place of a text adds to the weights of its words."""
    depth, is_title = 0, False
    node: nodes.Node | None = text.parent
    while node is not None:
        is_title = is_title or isinstance(node, nodes.title)
        depth += isinstance(node, nodes.section)
        node = node.parent
    if is_title:
        return (TITLE, HEADING, SUBHEADING)[min(depth, 3) - 1]
    return INTRODUCTION if depth == 1 else 0


def factors(names: list[str], root: Path) -> list[float]:
    """Return the factor of each page."""
    users = users_pages(root)
    rest = sorted(OTHERS, key=len, reverse=True)

    def factor(name: str) -> float:
        if name in users:
            return 0.7 if name in REFERENCES else 1
        return OTHERS[next(one for one in rest if name.startswith(one))]

    return list(map(factor, names))


def table(names: list[str], weights: dict[str, dict[str, int]]) -> dict[str, Any]:
    """Return the weights by term: numbers of pages, each followed by its weight."""
    terms: dict[str, list[int]] = {}
    for number, name in enumerate(names):
        for term, weight in weights.get(name, {}).items():
            terms.setdefault(term, []).extend((number, weight))
    return terms

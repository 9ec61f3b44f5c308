# SPDX-License-Identifier: Apache-2.0
"""Print the pages of docs/ for users, with their words: text, tables and code.

The pages in docs/contributing are not for users. Words are separated by white space and contain a letter or a digit;
comments of Markdown do not count.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES, WORDS = 40, 40_000
"""The limits, which tests/docs/test_documentation.py checks."""


def words(page: Path) -> int:
    """Return the number of words of a page."""
    text = re.sub(r"<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return sum(re.search(r"\w", word) is not None for word in text.split())


def links(page: Path) -> int:
    """Return the number of links of a page."""
    return len(re.findall(r"\]\([^)]+\)", page.read_text(encoding="utf-8")))


def users_pages(docs: Path = DOCS) -> list[Path]:
    """Return the pages for users."""
    return [page for page in sorted(docs.rglob("*.md")) if "contributing" not in page.relative_to(docs).parts]


def main() -> None:
    """Print the table."""
    for page in users_pages():
        print(f"{words(page):7,} {links(page):5} {page.relative_to(ROOT)}")
    total = sum(map(words, users_pages()))
    print(f"{total:7,} {sum(map(links, users_pages())):5} words and links of {len(users_pages())} pages; ", end="")
    print(f"limits: {PAGES} pages, {WORDS:,} words")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""The page in the form of Zephyr's external modules: its syntax, its headings, its commands and names."""

import itertools
import re
import warnings
from pathlib import Path

import pytest
from opwest.cli.parser import command_names
from opwest.zephyr.version import OLDEST, SERVICE, Version, cortex_m
from requirements_support import need, skip_here

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "contributing" / "zephyr-external-module.rst"
TEXT = PAGE.read_text(encoding="utf-8")
NEIGHBOURS = Path("doc/develop/manifest/external")
LINE = 104
"""Zephyr's lines of text have at most 100 characters; a reference in a line may be longer."""


def headings(text: str) -> list[tuple[str, str]]:
    """Return the titles of a page with the character of their lines; a line is as long as its title or longer."""
    lines = text.splitlines()
    found = []
    for title, line in itertools.pairwise(lines):
        if title.strip() and re.fullmatch(r"([#*=\-])\1{2,}", line) and len(line) >= len(title):
            found.append((title, line[0]))
    return found


def test_docutils_parses_the_page():
    need("docutils")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from docutils import nodes
        from docutils.core import publish_doctree
        from docutils.parsers.rst import roles

        # Roles of Sphinx, which Zephyr's documentation uses.
        for role in ("ref", "command", "file"):
            roles.register_local_role(role, lambda _name, raw, text, *_args, **_more: ([nodes.literal(raw, text)], []))
        settings = {"report_level": 2, "halt_level": 2, "file_insertion_enabled": False, "_disable_config": True}
        tree = publish_doctree(TEXT, settings_overrides=settings)
    assert len(list(tree.findall(nodes.literal_block))) >= 4


def test_form_of_the_page():
    """The template's headings in its order; a section of features, as libmpix has one."""
    own = headings(TEXT)
    required = [("Introduction", "*"), ("Usage with Zephyr", "*"), ("Reference", "*")]
    assert own[0] == ("opwest", "#")
    assert [one for one in own if one in required] == required
    assert TEXT.startswith(".. _external_module_opwest:\n\nopwest\n######\n\n")
    assert [line for line in TEXT.splitlines() if len(line) > LINE] == []
    assert f"Zephyr {OLDEST[0]}.{OLDEST[1]} and newer" in TEXT
    assert "docs/hosts.md" in TEXT


def test_headings_against_the_tree_of_zephyr():
    base = Path.home() / "zephyrproject" / "zephyr" / NEIGHBOURS
    pages = sorted(base.glob("*.rst"))
    if not pages:
        skip_here(f"no Zephyr tree with {NEIGHBOURS}")
    own = headings(TEXT)
    template = headings((base / "external.rst.tmpl").read_text(encoding="utf-8"))
    assert [one for one in own if one in template] == template[1:]
    for page in pages:
        found = headings(page.read_text(encoding="utf-8"))
        shared = [one for one in found if one in own]
        assert shared == [one for one in own if one in shared], page.name
        assert found[0][1] == own[0][1] == "#"


def test_commands_exist():
    named = re.findall(r"west opwest (\w[\w-]*)", TEXT)
    assert {"doctor", "generate", "import"} <= set(named)
    assert set(named) <= set(command_names())


@pytest.mark.parametrize("module", [SERVICE, cortex_m(Version(4, 2)), cortex_m(Version(3, 7)), "picolibc", "cmsis-nn"])
def test_modules_are_those_that_opwest_reports(module):
    assert f"``{module}``" in TEXT

# SPDX-License-Identifier: Apache-2.0
"""The page in the form of Zephyr's external modules: its build, its headings, its commands and names."""

import itertools
import re
import subprocess
import sys
from pathlib import Path

import pytest
from opwest.cli.parser import command_names
from opwest.zephyr.version import OLDEST, SERVICE, Version, cortex_m
from requirements_support import need, skip_here

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "contributing" / "zephyr-external-module.rst"
TEXT = PAGE.read_text(encoding="utf-8")
ZEPHYR = Path.home() / "zephyrproject" / "zephyr"
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


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The page and its neighbours, built as pages of Zephyr's documentation; warnings are errors."""
    if not (ZEPHYR / "doc" / "conf.py").is_file():
        skip_here(f"no documentation in {ZEPHYR}")
    need("sphinx", "sphinx_rtd_theme")
    output = tmp_path_factory.mktemp("pages")
    done = built(output)
    assert done.returncode == 0, done.stderr
    return output


def built(output, page=PAGE):
    command = [sys.executable, ROOT / "scripts" / "zephyr_page.py", "--zephyr", ZEPHYR, "-o", output, "--page", page]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)


def test_page_in_zephyrs_documentation(pages):
    """Its title is in the index beside the other modules; labels of the tree are links; the blocks are highlighted."""
    index = (pages / "develop" / "manifest" / "index.html").read_text(encoding="utf-8")
    listed = re.findall(r'<li class="toctree-l1"><a class="reference internal" href="external/(\w+)\.html">', index)
    assert {"opwest", "cannectivity"} <= set(listed)
    page = (pages / "develop" / "manifest" / "external" / "opwest.html").read_text(encoding="utf-8")
    assert "sphinx_rtd_theme" in page or "css/theme.css" in page
    for label, title in {"modules": "module", "west-extensions": "west extension command"}.items():
        assert re.search(rf'href="\.\./\.\./\.\./{label}\.html#{label}"><span[^>]*>{title}</span>', page), label
    kinds = re.findall(r'<div class="highlight-(\w+) notranslate">', page)
    assert {"yaml", "cmake", "c", "shell"} <= set(kinds)


def test_faulty_page_is_an_error(pages, tmp_path):
    """The build finds a label that the tree does not have, and an error of the syntax."""
    page = tmp_path / "page.rst"
    faulty = TEXT.replace(":ref:`module <modules>`", ":ref:`module <no_such_label>`")
    faulty = faulty.replace("\nReference\n**", "\nReference\n")
    assert faulty.count("no_such_label") == 1
    page.write_text(faulty, encoding="utf-8")
    done = built(tmp_path / "output", page)
    assert done.returncode == 1
    assert "undefined label: 'no_such_label'" in done.stderr and "Title underline too short" in done.stderr, done.stderr


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
    base = ZEPHYR / NEIGHBOURS
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

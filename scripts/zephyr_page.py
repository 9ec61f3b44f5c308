# SPDX-License-Identifier: Apache-2.0
"""Build opwest's page with Zephyr's documentation: its configuration, theme and extensions, beside its neighbours.

    python scripts/zephyr_page.py [--zephyr DIR] [-o DIR]

Warnings are errors. The tree's directory of external modules is copied, with opwest's page in it. Other pages are not
built: one that a reference names is replaced by a page with its title and its label, which must exist in the tree.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "contributing" / "zephyr-external-module.rst"
EXTERNAL = Path("develop") / "manifest" / "external"
OMITTED = {
    "zephyr.doxyrunner": "runs Doxygen over the whole tree",
    "zephyr.doxybridge": "reads what Doxygen wrote",
    "zephyr.doxytooltip": "reads what Doxygen wrote",
    "zephyr.api_overview": "reads what Doxygen wrote",
    "zephyr.kconfig": "reads the Kconfig files of the whole tree",
    "zephyr.domain": "reads all boards and samples",
    "zephyr.gh_utils": "compares MAINTAINERS.yml with all files of the tree",
    "zephyr.external_content": "copies all pages of the tree",
    "zephyr.html_redirects": "writes redirections to pages that are not here",
}
"""The extensions of the tree's conf.py that are left out, each with what it does."""
_CONF = """\
# The configuration of the tree, without the extensions that read all of it.
__file__ = {conf!r}
exec(compile(open(__file__, encoding="utf-8").read(), __file__, "exec"))
extensions = [name for name in extensions if name not in {omitted!r}]
templates_path = [{templates!r}]
html_last_updated_fmt = None
html_context["display_gh_links"] = False
"""
_INDEX = """\
West Projects index
###################

.. toctree::
   :glob:

   external/*
"""


def prepare(zephyr: Path, work: Path, page: Path = PAGE) -> Path:
    """Write the sources of the documentation to a directory; return their directory."""
    doc, source = zephyr / "doc", work / "source"
    (source / EXTERNAL).mkdir(parents=True)
    for neighbour in (doc / EXTERNAL).glob("*.rst"):
        shutil.copy(neighbour, source / EXTERNAL)
    shutil.copy(page, source / EXTERNAL / "opwest.rst")
    shutil.copy(doc / "substitutions.txt", source)
    (source / "index.rst").write_text("Zephyr\n######\n\n.. toctree::\n   :glob:\n\n   **\n", encoding="utf-8")
    (source / EXTERNAL.parent / "index.rst").write_text(_INDEX, encoding="utf-8")
    named = "".join(file.read_text(encoding="utf-8") for file in (source / EXTERNAL).glob("*.rst"))
    for label in sorted(set(re.findall(r":ref:`(?:[^`<]*<)?([\w-]+)>?`", named))):
        title = _title(doc, label)
        if title is not None:
            text = f".. _{label}:\n\n{title}\n{'#' * len(title)}\n"
            (source / f"{label}.rst").write_text(text, encoding="utf-8")
    conf = _CONF.format(conf=str(doc / "conf.py"), omitted=sorted(OMITTED), templates=str(doc / "_templates"))
    (source / "conf.py").write_text(conf, encoding="utf-8")
    return source


def _title(doc: Path, label: str) -> str | None:
    """Return the title below a label of the tree, outside of the pages of external modules; None without it."""
    pattern = re.compile(rf"^\.\. _{re.escape(label)}:\n+(?:\.\. _[\w-]+:\n+)*(.+)\n([#*=~-])\2+$", re.MULTILINE)
    for path in sorted(doc.rglob("*.rst")):
        match = pattern.search(path.read_text(encoding="utf-8")) if EXTERNAL.name not in path.parts else None
        if match is not None:
            return match[1]
    return None


def build(zephyr: Path, output: Path, page: Path = PAGE) -> int:
    """Build the page into a directory; return the exit code of Sphinx, which prints its warnings."""
    from sphinx.cmd.build import main as sphinx

    os.environ["OUTPUT_DIR"] = str(output)
    os.environ.setdefault("ZEPHYR_BASE", str(zephyr))
    with tempfile.TemporaryDirectory() as work:
        source = prepare(zephyr, Path(work), page)
        words = ["-W", "--keep-going", "-n", "-q", "-b", "html", "-d", f"{work}/doctrees", str(source), str(output)]
        return int(sphinx(words))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--zephyr", type=Path, default=Path.home() / "zephyrproject" / "zephyr", help="Zephyr's tree")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "build" / "zephyr-page", help="for the pages")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page")
    options = parser.parse_args()
    sys.exit(build(options.zephyr.resolve(), options.output.resolve(), options.page))

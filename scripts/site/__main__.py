# SPDX-License-Identifier: Apache-2.0
"""Build the documentation as a site (`make docs`), and check it. Every warning of Sphinx is an error.

python scripts/site [--output DIRECTORY]
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
REQUIRED = ("sphinx", "myst_parser", "pydata_sphinx_theme")


def build(source: Path, output: Path) -> bool:
    """Build the site of the pages in `source`; return whether Sphinx reported neither an error nor a warning."""
    from sphinx.cmd.build import build_main

    shutil.rmtree(output, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="opwest-site-") as trees:
        options = ["-q", "-E", "-a", "-W", "--keep-going", "-b", "site", "-c", str(HERE), "-d", trees]
        return build_main([*options, str(source), str(output)]) == 0


def main() -> int:
    """Build and check; return the exit code."""
    parser = argparse.ArgumentParser(prog="scripts/site", description="Build the documentation as a site.")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "site", metavar="DIRECTORY")
    parser.add_argument("--source", type=Path, default=ROOT, metavar="DIRECTORY", help="the repository")
    arguments = parser.parse_args()
    if absent := [name for name in REQUIRED if importlib.util.find_spec(name) is None]:
        print(f"site: error: missing packages: {', '.join(absent)}", file=sys.stderr)
        print("  hint: run `make docs`, or `pip install -e '.[docs]'`", file=sys.stderr)
        return 1
    if not build(arguments.source, arguments.output):
        print("site: error: the pages have the faults above", file=sys.stderr)
        return 1
    from checks import faults

    found = faults(arguments.output)
    for fault in found:
        print(f"site: error: {fault}", file=sys.stderr)
    if not found:
        print(f"{arguments.output / 'index.html'}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())

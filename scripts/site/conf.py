# SPDX-License-Identifier: Apache-2.0
"""The documentation as a site: `make docs` builds it from the pages of the repository, in build/site.

The source directory is the repository, so links between pages are the same on the site and in the repository.
docs/README.md is the index; its tables and those of docs/contributing/README.md are the navigation. The environment
variable REPOSITORY is the address of the published repository: it replaces the placeholder in the pages.
"""

from __future__ import annotations

import sys
from pathlib import Path

from opwest import __version__

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

project = "opwest"
author = "the authors of opwest"
html_title = "opwest"
version = release = __version__
language = "en"

root_doc = "docs/README"
include_patterns = [
    "*.md",
    "docs/**/*.md",
    "docs/*.md",
    "docs/**/*.rst",
    "examples/*/README.md",
    "skills/*/SKILL.md",
    "benchmarks/README.md",
    "tests/fuzz/README.md",
    "scripts/mutation_survivors.md",
    "zephyr_module/bundle/ext/README.md",
]
exclude_patterns = [".*", "build", "node_modules", "**/__pycache__", "generator"]

extensions = ["myst_parser", "opwest_site"]
myst_heading_anchors = 5
# A block of another tool's output can contain an ellipsis, which is no token of its language.
suppress_warnings = ["misc.highlighting_failure"]
highlight_language = "none"
smartquotes = False

html_theme = "pydata_sphinx_theme"
html_theme_options = {
    "logo": {"image_light": "static/logo.svg", "image_dark": "static/logo-dark.svg", "text": "opwest"},
    "navbar_center": [],
    "navbar_end": ["theme-switcher"],
    "primary_sidebar_end": [],
    "secondary_sidebar_items": {"**": ["page-toc"], "docs/README": []},
    "footer_start": ["version.html"],
    "footer_end": [],
    "search_as_you_type": True,
    "search_bar_text": "Search",
    "show_toc_level": 2,
    "back_to_top_button": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"**": ["pages.html"]}
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = [("ranking.js", {"defer": "defer"})]
html_favicon = "static/favicon.svg"
templates_path = ["templates"]
html_use_index = False
html_copy_source = False
html_show_sourcelink = False
html_scaled_image_link = False
html_permalinks_icon = "#"

# SPDX-License-Identifier: Apache-2.0
"""The documentation as a site: strict, complete, without requests to other servers, with a search."""

import functools
import http.server
import json
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from requirements_support import need

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "scripts" / "site"
sys.path[:0] = [str(SITE), str(SITE / "opwest_site"), str(ROOT / "tests" / "report")]

import checks  # noqa: E402
from addresses import address  # noqa: E402
from navigation import all_sections, users_pages  # noqa: E402
from report_browser import browser, find_browser  # noqa: E402

SECTIONS = all_sections(ROOT)
SIDEBAR = [section for section, shown in SECTIONS if shown]
FIRST = {
    "module": "opwest_add_model, west opwest, .gitignore, conflict",
    "running-on-boards": "--board, tolerance, --udp",
    "getting-started": "native_sim, glossary",
    "writing-operators": "FILL_IN, archive header",
    "report": "arena, stack",
    "testing": "--fail-on, twister, golden vectors, pre-commit",
    "vela": "Ethos-U",
    "tuning": "flash wait states",
    "importing-models": "CMSIS-NN, tflite",
    "compilers/rust-and-zig": "zig",
    "compilers/c": "libm",
    "threads": "userspace, EBUSY",
    "bundles": "signature, rollback",
    "command-line": "exit code, completion",
    "hosts": "doctor",
    "contributing/decisions": "decisions",
}
"""The first result of what people enter."""
TASKS = ("Bring a model", "Bring operators", "Bring an accelerator", "Into my application", "On my board", "Ship it")


def build(output: Path, source: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SITE), "--source", str(source), "--output", str(output)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need("sphinx")
    output = tmp_path_factory.mktemp("site") / "site"
    done = build(output)
    assert (done.returncode, done.stderr) == (0, ""), "a fault of Sphinx or of scripts/site/checks.py"
    return output


def listed() -> list[str]:
    return [path for section, _ in SECTIONS for _, path in section.pages]


def test_every_page_is_listed_once() -> None:
    """Those of the sidebar are the pages for users."""
    docs = [path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")]
    others = [path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *ROOT.glob("examples/*/README.md")]]
    assert set(docs) | set(others) == {path for path in listed() if path in docs + others} | {"docs/README.md"}
    assert len(listed()) == len(set(listed()))
    assert tuple(section.title for section in SIDEBAR) == ("Start", *TASKS[:2], "Compilers", *TASKS[2:], "Reference")
    users = {f"{name}.md" for name in users_pages(ROOT)}
    assert users == {path for path in docs if not path.startswith("docs/contributing/")}


def test_the_navigation_is_that_of_the_index(site: Path) -> None:
    """A page that is not for users has its own section below the others."""
    (details,) = (section for section, _ in SECTIONS if section.title == "Details")
    compilers = next(section for section in SIDEBAR if section.title == "Compilers")
    for page, expected in (("compilers/c", SIDEBAR), ("contributing/runtime", [*SIDEBAR, details])):
        text = (site / f"{page}.html").read_text(encoding="utf-8")
        nav = text.partition('aria-label="Pages"')[2].partition("</nav>")[0]
        assert re.findall(r'class="caption-text">([^<]*)<', nav) == [section.title for section in expected]
        labels = re.findall(r'<a class="[^"]*" href="[^"]*">([^<]*)</a>', nav)
        folded = {label for label, _ in compilers.pages[1:] if page != "compilers/c"}
        assert labels == [label for section in expected for label, _ in section.pages if label not in folded]
        assert nav.count('<li class="toctree-l1 current active">') == 1
    for path in listed():
        assert (site / f"{address(path.rpartition('.')[0])}.html").is_file()


def test_pages_contain_no_comments_and_all_variants_of_the_picture(site: Path) -> None:
    assert "<!-- zephyr" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "zephyr --" not in (site / "overview.html").read_text(encoding="utf-8")
    text = (site / "index.html").read_text(encoding="utf-8")
    for name in ("flow", "flow-dark", "flow-narrow", "flow-narrow-dark"):
        (image,) = re.findall(rf'<img [^>]*_images/{name}\.svg"[^>]*>', text)
        assert ("only-dark" in image) == name.endswith("dark") and ("only-narrow" in image) == ("narrow" in name)


def test_links_to_other_files_are_pages(site: Path) -> None:
    text = (site / "manifest.html").read_text(encoding="utf-8") + (site / "index.html").read_text(encoding="utf-8")
    assert 'href="source/schemas/device-manifest.schema.json.html"' in text
    page = (site / "source" / "schemas" / "device-manifest.schema.json.html").read_text(encoding="utf-8")
    assert "urn:opwest:device-manifest:1" in re.sub(r"<[^>]*>", "", page)
    listing = (site / "source" / "project_template.html").read_text(encoding="utf-8")
    assert "CMakeLists.txt" in listing


def test_code_is_highlighted(site: Path) -> None:
    for page, language in (*(("state", name) for name in ("c", "yaml", "sh")), ("module", "cmake")):
        text = (site / f"{page}.html").read_text(encoding="utf-8")
        block = text.partition(f'class="highlight-{language} ')[2].partition("</pre>")[0]
        assert '<span class="' in block, (page, language)


def test_index_of_the_search(site: Path) -> None:
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    pages = index["docnames"]
    assert all((site / f"{name}.html").is_file() for name in pages)
    assert set(pages) == {address(path.rpartition(".")[0]) for path in [*listed(), "docs/README.md"]}

    def found(term: str) -> set[str]:
        numbers = index["terms"][term]
        return {pages[number] for number in (numbers if isinstance(numbers, list) else [numbers])}

    assert "vela" in found("vela") and "bundles" in found("slot") and "threads" in found("config_userspac")
    assert "Exit codes" in index["alltitles"]


def write_pages(folder: Path, **more: str) -> None:
    (folder / "docs" / "images").mkdir(parents=True)
    index = "# Index\n\n## Start\n\n| | |\n|---|---|\n| [Page](page.md) | a page |\n"
    for name, text in {"README": index, "page": "# Page\n\n## Part\n\n[itself](#part)\n", "other": ""}.items():
        if text or name in more:
            (folder / "docs" / f"{name}.md").write_text(text + more.get(name, ""), encoding="utf-8")


def test_faults_of_pages_are_errors(tmp_path: Path) -> None:
    """One build reports all of them."""
    need("sphinx")
    wrong = "\n[x](absent.md)\n[x](README.md#absent)\n[x](#nowhere)\n![x](images/absent.png)\n\n<div>x</div>\n"
    write_pages(tmp_path / "pages", page=wrong, other="# Other\n", README="| [Absent](absent.md) | |\n")
    done = build(tmp_path / "site", tmp_path / "pages")
    assert done.returncode == 1
    shown = done.stderr.replace(f"{tmp_path / 'pages'}/", "")
    for message in (
        "docs/page.md:7: WARNING: 'myst' cross-reference target not found: 'absent.md'",
        "docs/page.md:7: WARNING: local id not found in doc 'docs/README': 'absent'",
        "docs/page.md:7: WARNING: 'myst' cross-reference target not found: 'nowhere'",
        "docs/page.md:7: WARNING: image file not readable: docs/images/absent.png",
        "docs/page.md:12: WARNING: HTML element: use Markdown: <div>x</div>",
        "docs/other.md: WARNING: document isn't included in any toctree",
        "toctree contains reference to nonexisting document 'docs/absent'",
        "site: error: the pages have the faults above",
    ):
        assert message in shown, shown


def test_resources_of_other_servers_are_errors(tmp_path: Path) -> None:
    need("sphinx")
    write_pages(tmp_path / "pages", page="\n![x](https://127.0.0.1/x.png)\n")
    done = build(tmp_path / "site", tmp_path / "pages")
    assert done.returncode == 1
    assert done.stderr == "site: error: page.html: loads 'https://127.0.0.1/x.png' from another server\n"


def test_address_of_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("sphinx")
    write_pages(tmp_path / "pages", page="\n`west init -m URL_OF_THIS_REPOSITORY`\n")
    monkeypatch.setenv("REPOSITORY", "ssh://server/opwest")
    assert build(tmp_path / "site", tmp_path / "pages").returncode == 0
    assert "ssh://server/opwest" in (tmp_path / "site" / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('<a href="absent.html">x</a>', "broken link 'absent.html'"),
        ('<a href="#absent">x</a>', "broken anchor '#absent'"),
        ('<a href="../../outside.html">x</a>', "broken link '../../outside.html'"),
        ('<script src="//server/x.js"></script>', "loads '//server/x.js' from another server"),
        ('<p style="background: url(https://server/x.png)"></p>', "loads 'https://server/x.png' from another server"),
        ('<img src="absent.png" alt="">', "loads 'absent.png', which does not exist"),
        ('<img src="data:image/png;base64,">', "image without alt: data:image/png;base64,"),
        ('<p id="a"></p><p id="a"></p>', "duplicate id 'a'"),
        ("<div><p></div>", "</div> at line 1 ends <p>"),
        ("<h1>x</h1>", "2 headings of level 1, expected 1"),
        ("<article><!-- not run: x --></article>", "comment 'not run: x'"),
    ],
)
def test_checks_of_the_html(body: str, message: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(f"<!doctype html><title>t</title><h1>t</h1>{body}", encoding="utf-8")
    assert f"page.html: {message}" in checks.faults(tmp_path)
    page.write_text('<!doctype html><title>t</title><h1 id="t">t</h1><a href="page.html#t">x</a>', encoding="utf-8")
    assert checks.faults(tmp_path) == []
    (tmp_path / "x.css").write_text('@import "https://server/x.css";', encoding="utf-8")
    assert checks.faults(tmp_path) == ["x.css: loads 'https://server/x.css' from another server"]


def test_missing_packages_are_reported(tmp_path: Path) -> None:
    shutil.copytree(SITE, tmp_path / "site", ignore=shutil.ignore_patterns("__pycache__"))
    code = "import runpy, importlib.util as u; u.find_spec = lambda name: None\n"
    code += "runpy.run_path('site/__main__.py', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    message = "missing packages: sphinx, myst_parser, pydata_sphinx_theme\n  hint: run `make docs`"
    assert f"site: error: {message}" in done.stderr


@pytest.fixture
def server(site, monkeypatch):
    """The address of a web server of the site, without a log."""
    monkeypatch.setattr(http.server.SimpleHTTPRequestHandler, "log_message", lambda *_: None)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}/"
        running.shutdown()
        thread.join()


@pytest.mark.needs("chromium")
def test_search_and_pages_in_a_browser(site: Path, server: str) -> None:
    """From a web server and from files; phones; every request goes to the site."""
    executable = find_browser()
    assert executable is not None
    wait = "new Promise(done => { let left = 400; const look = () => (CONDITION) ? done(true) : left-- ? "
    wait += "setTimeout(look, 50) : done(false); look(); })"
    results = "document.querySelectorAll('ul.search li').length > 2"
    with browser(executable) as page:
        for root in (server, f"{site.as_uri()}/"):
            page.screen(1280)
            page.events.clear()
            page.send("Page.navigate", url=f"{root}search.html?q=bundle")
            assert page.evaluate(wait.replace("CONDITION", results)), root
            links = page.evaluate("[...document.querySelectorAll('ul.search li > a')].map(a => a.href)")
            assert any(link.partition("?")[0].partition("#")[0] == f"{root}bundles.html" for link in links)
            # The page before this one may still load its results.
            own = (server, site.as_uri(), "data:")
            assert [url for url in page.requests() if not url.startswith(own)] == []
        page.open(site / "module.html")
        queries = {query: name for name, line in FIRST.items() for query in line.split(", ")}
        first = "Object.fromEntries(QUERIES.map(q => [q, Search._performSearch(...Search._parseQuery(q)).pop()[0]]))"
        assert page.evaluate(first.replace("QUERIES", json.dumps(list(queries)))) == queries
        page.screen(390, 844)
        for path in listed():
            page.open(site / f"{address(path.rpartition('.')[0])}.html")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{path} is wider than a phone"
        page.open(site / "index.html")
        shown = "[...document.querySelectorAll('p.picture img')].filter(i => i.offsetWidth)"
        shown += ".map(i => i.src.split('/').pop())"
        assert page.evaluate(shown) == ["flow-narrow.svg"]
        page.screen(1280, dark=True)
        page.open(site / "index.html")
        assert page.evaluate(shown) == ["flow-dark.svg"]
        page.evaluate("document.querySelector('button.search-button-field, .search-button__button').click()")
        assert page.evaluate("document.querySelector('dialog[open] input[type=search]') !== null")

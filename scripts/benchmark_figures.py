# SPDX-License-Identifier: Apache-2.0
"""The figures of README.md and benchmarks/README.md, from benchmarks/figures.json.

  python benchmarks --only int8_models default_speed     # writes build/bench/NAME.json
  python scripts/benchmark_figures.py --store            # into figures.json and the pages

figures.json has the tables and limits of the last run of each benchmark, with its date, commit, command and tools. The
pages contain them between `<!-- figures: NAME -->` and `<!-- end of figures -->`. Without options, the pages are
written from figures.json. With `--check`, nothing is written: exit code 1 if a page differs.

A run of some boards (`--board`) replaces the tables and limits of these boards. Other runs replace all of theirs. A run
of some models (`--only`) is refused: its sums and tables are not those of the benchmark.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "benchmarks"))

from common import cell, markdown_table  # noqa: E402

STORE = ROOT / "benchmarks" / "figures.json"
PAGES = (ROOT / "README.md", ROOT / "benchmarks" / "README.md")
BOARD, CORE = "mps2/an386", "Cortex-M4"
"""The board of the summary."""
ENGINES = ("opwest", "tflite-micro with CMSIS-NN on the file's graph")
NOT_STORED = "Not stored: `python benchmarks --only {}` measures these figures.\n"
_BLOCK = re.compile(r"(<!-- figures: (\w+) -->\n)(.*?)(<!-- end of figures -->)", re.DOTALL)

Run = dict[str, Any]
"""A benchmark: tables with the provenance of their run, and limits."""


class FiguresError(Exception):
    """The figures cannot be stored or printed; the text is the reason."""


def merged(stored: Run | None, run: Run) -> Run:
    """Return a benchmark with the tables and limits of a run; those of other boards are kept after a run of some."""
    source = {key: run[key] for key in ("command", "date", "commit", "machine", "tools")}
    tables = [{**table, "source": source} for table in run["tables"] if not table.pop("is_detail")]
    limits = run["limits"]
    if stored is not None and _has_option(run, "--board"):
        # The title ends with the version of the compiler.
        titles = {table["title"].partition(";")[0] for table in stored["tables"]}
        for title in (table["title"] for table in tables):
            if title.partition(";")[0] not in titles:
                raise FiguresError(f"no stored table '{title.partition(';')[0]}': run the benchmark without --board")
        tables = _replaced(stored["tables"], tables, "title")
        limits = _replaced(stored["limits"], limits, "what")
    return {"benchmark": run["benchmark"], "tables": tables, "limits": limits}


def _replaced(old: list[Any], new: list[Any], key: str) -> list[Any]:
    """Return the old list in its order with the new entries of the same key, then the other new entries."""
    by_key = {entry[key].partition(";")[0]: entry for entry in new}
    kept = [by_key.pop(entry[key].partition(";")[0], entry) for entry in old]
    return [*kept, *by_key.values()]


def _has_option(run: Run, option: str) -> bool:
    return any(word.partition("=")[0] == option for word in run["command"].split())


def stored_from(folder: Path, names: Sequence[str], store: dict[str, Run]) -> dict[str, Run]:
    """Return the store with the results of a directory: those of the named benchmarks, or all."""
    files = {path.stem: path for path in sorted(folder.glob("*.json")) if path.stem != "bench"}
    missing = [name for name in names if name not in files]
    if missing or not files:
        raise FiguresError(f"no {', '.join(missing) or 'result'} in {folder}: expected files of `python benchmarks`")
    result = dict(store)
    for name in names or files:
        run = json.loads(files[name].read_text(encoding="utf-8"))
        if not any(not table["is_detail"] for table in run["tables"]):
            raise FiguresError(f"{files[name]} has no tables: {'; '.join(run['skipped']) or 'nothing was measured'}")
        if _has_option(run, "--only"):
            command = run["command"]
            raise FiguresError(f"{files[name]} has only some models: '{command}'; run the benchmark without --only")
        result[name] = merged(store.get(name), run)
    return dict(sorted(result.items()))


def page_with_figures(text: str, store: dict[str, Run]) -> str:
    """Return the text of a page with the figures of the store. Raises FiguresError for an unknown name."""

    def block(match: re.Match[str]) -> str:
        name = match[2]
        if name == "summary":
            content = summary(store)
        elif name in store:
            content = section(store[name])
        elif (ROOT / "benchmarks" / f"{name}.py").is_file():
            content = NOT_STORED.format(name)
        else:
            raise FiguresError(f"unknown benchmark '{name}': expected the name of a script of benchmarks/, or summary")
        return f"{match[1]}\n{content}\n{match[4]}"

    return _BLOCK.sub(block, text)


def section(run: Run) -> str:
    """Return the tables of a benchmark, each run's with its command, and which limits are not met."""
    parts, before = [], None
    for table in run["tables"]:
        source = table["source"]
        if source != before:
            tools = ", ".join(f"{tool} {version}" for tool, version in source["tools"].items())
            parts.append(f"`{source['command']}`, {source['date']}, commit {source['commit']}, {tools}:")
            before = source
        parts += [table["title"], markdown_table(table["columns"], table["rows"]).rstrip("\n")]
    limits, unmet = run["limits"], [limit for limit in run["limits"] if not limit["met"]]
    if limits:
        parts.append(f"Limits met: {len(limits) - len(unmet)} of {len(limits)}." + (" Not met:" if unmet else ""))
    if unmet:
        rows = [[limit["what"], cell(limit["value"]), cell(limit["most"])] for limit in unmet]
        parts.append(markdown_table(["limit", "value", "at most"], rows).rstrip("\n"))
    return "\n\n".join(parts) + "\n"


def summary(store: dict[str, Run]) -> str:
    """Return one line: how many times fewer instructions than tflite-micro the int8 models need on one core."""
    tables = store.get("int8_models", {"tables": []})["tables"]
    table = next((table for table in tables if table["title"].startswith(f"{BOARD} ")), None)
    if table is None:
        return NOT_STORED.format("int8_models")
    column = table["columns"].index("instructions")
    values: dict[str, dict[str, Any]] = {}
    for row in table["rows"]:
        model, _, engine = row[0].partition(", ")
        values.setdefault(model, {})[engine] = row[column]
    own, other = ENGINES
    ratios = ", ".join(f"{model} {e[other] / e[own]:.1f}" for model, e in values.items() if own in e and other in e)
    return (
        f"MLPerf Tiny on {CORE}, times fewer instructions than tflite-micro with CMSIS-NN: {ratios} "
        f"(counted in QEMU, {table['source']['date']}; [benchmarks](benchmarks/README.md#int8-models)).\n"
    )


def main() -> int:
    """Store, write or check the figures; exit code 1 if a page differs or an input is missing."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--store", nargs="*", metavar="NAME", help="store results first: of these scripts, or all")
    options.add_argument("--results", type=Path, default=ROOT / "build" / "bench", metavar="DIR", help="of the run")
    options.add_argument("--check", action="store_true", help="write nothing; report pages that differ")
    given = options.parse_args()
    try:
        store = json.loads(STORE.read_text(encoding="utf-8"))
        if given.store is not None and not given.check:
            store = stored_from(given.results, given.store, store)
            STORE.write_text(json.dumps(store, indent=1) + "\n", encoding="utf-8")
        pages = {path: page_with_figures(path.read_text(encoding="utf-8"), store) for path in PAGES}
    except FiguresError as reason:
        print(f"error: {reason}", file=sys.stderr)
        return 1
    stale = [path for path, text in pages.items() if path.read_text(encoding="utf-8") != text]
    for path in stale:
        if given.check:
            print(
                f"error: {path.relative_to(ROOT)} differs from {STORE.name}: run `python scripts/benchmark_figures.py`"
            )
        else:
            path.write_text(pages[path], encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
    return int(given.check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())

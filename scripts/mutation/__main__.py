# SPDX-License-Identifier: Apache-2.0
"""Mutation testing: random mutants of generator/ and zephyr_module/src against the tests of CI that reach them.

The sample depends only on the sources and the seed. First all tests run once, to record which mutants each of them
reaches; a run that was ended after it continues where it was. A mutant is killed if one of the tests that reach it
fails or does not end. The tests of a mutant run in the order of their time, with what they share, up to a limit of
recorded seconds; a mutant that these do not kill counts as survived.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from reached import Reached, record
from source_mutants import sample
from trials import KILLED, NOT_REACHED, SURVIVED, TIMEOUT, Result, Trials

ROOT = Path(__file__).resolve().parents[2]
PYTEST = ("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder", "--tier=all")


def package_of(name: str) -> str:
    """Return the package of a mutant, or the directory of a C file."""
    parts = name.partition(":")[0].split("/")
    if parts[0] != "generator":
        return "/".join(parts[:2])
    return parts[2] if len(parts) > 3 else "(top level)"


def print_table(results: Sequence[Result]) -> None:
    """Print the states of the mutants of each package, the survivors and the share killed."""
    packages: dict[str, Counter[str]] = defaultdict(Counter)
    for result in results:
        packages[package_of(result.name)][result.state] += 1
    print(f"\n{'package':<20} {'mutants':>8} {'killed':>8} {'timeout':>8} {'survived':>9} {'not reached':>12}")
    total = sum(packages.values(), Counter())
    for package, counts in [*sorted(packages.items()), ("all", total)]:
        shown = [counts[state] for state in (KILLED, TIMEOUT, SURVIVED, NOT_REACHED)]
        print(f"{package:<20} {sum(shown):>8} {shown[0]:>8} {shown[1]:>8} {shown[2]:>9} {shown[3]:>12}")
    print("\nsurvivors:")
    for result in sorted(results, key=lambda one: one.name):
        if result.state in (SURVIVED, NOT_REACHED):
            left = f", {result.left} beyond the limit" if result.left else ""
            print(f"  {result.state} ({result.tests} tests{left}): {result.name}")
    killed = total[KILLED] + total[TIMEOUT]
    print(f"\nkilled: {killed} of {total.total()} mutants, {100 * killed / max(total.total(), 1):.1f} %")


def main() -> int:
    """Record the tests if they are not recorded yet, and try the mutants; return 0."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--count", type=int, default=300, help="mutants (default: %(default)s)")
    options.add_argument("--seed", type=int, default=1, help="of the sample (default: %(default)s)")
    options.add_argument("--only", nargs="*", default=(), metavar="PREFIX", help="paths of files to change")
    options.add_argument("--tree", type=Path, default=ROOT, help="a clone with its .venv (default: this one)")
    options.add_argument("--folder", type=Path, help="of records and results (default: build/mutation of the tree)")
    options.add_argument("--limit", type=float, default=40, help="processor seconds a mutant (default: %(default)s)")
    options.add_argument("--first", type=Path, help="results.jsonl of another tree: its killing tests run first")
    options.add_argument("--jobs", type=int, default=2, help="processes (default: %(default)s)")
    options.add_argument("--tests", nargs="*", default=("tests",), help="tests to record (default: all tests of CI)")
    given = options.parse_args()
    tree = given.tree.resolve()
    folder = (given.folder or tree / "build" / "mutation").resolve()
    count, chosen = sample(tree, given.count, given.seed, given.only)
    print(f"{count} mutants, {len(chosen)} chosen", flush=True)
    if not (folder / "sample.json").exists():
        record(tree, folder, chosen, [*PYTEST, *given.tests])
    reached = Reached(folder, chosen)
    results = Trials(tree, reached, folder, given.limit, given.jobs, given.first).judge(chosen)
    print_table(results)
    (folder / "results.json").write_text(json.dumps([vars(one) for one in results], indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

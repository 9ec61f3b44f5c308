# SPDX-License-Identifier: Apache-2.0
"""The cost of `opwest generate` for models of 10 to 10,000 operators.

Each model has this number of distinct operators in one object, and a run that calls each once, in a chain. Models of
other kinds have 1,000 and 2,000 operators: each has something else in large numbers. opwest runs as a process.
Processor time (user and system) is the minimum of the repetitions and is still noisy; clock time and peak memory are
medians.
"""

from __future__ import annotations

import argparse
import os
import pstats
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from common import (
    DENSE,
    Cost,
    Report,
    SkippedError,
    best,
    execute,
    host_compiler,
    host_target,
    measure,
    opwest_command,
    parser,
    positive,
    require,
    write_model,
)
from start_up import (
    MAX_DIGITS_RATIO,
    MAX_GENERATE_RATIO,
    MAX_VERSION_RATIO,
    OPERATORS,
    measure_start_up,
    measure_times,
)

SIZES = (10, 100, 1_000, 10_000)
MAX_SECONDS = 1.0
"""For 100 operators."""
MAX_LARGE_SECONDS = 3.0
"""For 10,000."""
MAX_GROWTH = 10.5
"""From 1,000 operators to 10,000, without the time for 10."""
KINDS = ("one object each", "an archive of objects", "one C source each", "constants and debug information")
KIND_SIZES = (10, 1_000, 2_000)
MAX_KIND_GROWTH = 2.2
"""From 1,000 operators to 2,000, without the time for 10."""


def generate(manifest: Path, output: Path) -> list[str]:
    """Return the command that is measured."""
    return [*opwest_command(), "generate", str(manifest), "-o", str(output)]


def write_kind(folder: Path, count: int, kind: str) -> Path:
    """Write a model of a kind and return its manifest."""
    target, compiler = host_target(), [*host_compiler(), "-O1"]
    if kind == KINDS[-1]:
        return write_model(folder, count, target, [*compiler, "-g"], arguments=DENSE, body=_BODY)
    manifest = write_model(folder, count, target, compiler)
    head, *functions = (folder / "operators.c").read_text().split("int32_t op_")
    names = [f"op_{function[:5]}" for function in functions]
    for name, function in zip(names, functions, strict=True):
        (folder / f"{name}.c").write_text(f"{head}int32_t op_{function}")
    sources, objects = ([f"{name}.{suffix}" for name in names] for suffix in "co")
    listed = sources if kind == KINDS[2] else objects
    if kind != KINDS[2]:
        for at in range(0, count, 500):
            execute([*compiler, "-c", *sources[at : at + 500]], cwd=folder)
    if kind == KINDS[1]:
        require("ar")
        execute(["ar", "rcs", "operators.a", *objects], cwd=folder)
        listed = ["operators.a"]
    entry = f"files: [{', '.join(listed)}]"
    if kind != KINDS[2]:
        entry = f"target: {target}, {entry}"
    manifest.write_text(manifest.read_text().replace(f"target: {target}, files: [operators.o]", entry))
    return manifest


_BODY = "for (int i = 0; i < 8; i++) { result[i] = (int8_t)(data[i] * weight[i] + bias[i]); } return 0;"


def measure_kinds(work: Path, report: Report, repeat: int) -> None:
    """Measure first generations of each kind of model, and compare their growth with its limit."""
    rows = []
    for number, kind in enumerate(KINDS):
        seconds = []
        for count in KIND_SIZES:
            manifest = write_kind(work / f"kind_{number}_{count}", count, kind)
            output = work / f"kind_app_{number}_{count}"
            costs = []
            for _ in range(repeat):
                shutil.rmtree(output, ignore_errors=True)
                costs.append(measure(generate(manifest, output)))
            seconds.append(best(costs).cpu)
        rows.append([kind, *seconds])
    title = f"CPU seconds of `opwest generate` by the kind of model, {repeat} runs each."
    report.table(title, ["operators", *(f"{count:,}" for count in KIND_SIZES)], rows, "s")
    for kind, least, small, large in rows:
        report.limit(f"growth from 1,000 to 2,000, {kind}", (large - least) / (small - least), MAX_KIND_GROWTH)


def times(folder: Path) -> dict[str, int]:
    """Return the modification time of every file below a directory."""
    return {
        str(path.relative_to(folder)): path.stat().st_mtime_ns
        for path in folder.rglob("*")
        if path.is_file() and path.name != "mutex"
    }


def measure_size(work: Path, count: int, repeat: int) -> tuple[Cost, Cost]:
    """Return the cost of a first generation and of one without changes."""
    manifest = write_model(work / f"model_{count}", count, host_target(), [*host_compiler(), "-O1"])
    first, again = [], []
    for _ in range(repeat):
        output = work / f"app_{count}"
        shutil.rmtree(output, ignore_errors=True)
        first.append(measure(generate(manifest, output)))
        before = times(output)
        again.append(measure(generate(manifest, output)))
        if times(output) != before:
            raise AssertionError("a generation from unchanged input changed a file")
    return best(first), best(again)


def profile(work: Path, sizes: Sequence[int], report: Report, shown: int) -> None:
    """Print the largest costs at the largest size, and their growth from the previous size."""
    found = []
    for count in sizes[-2:]:
        manifest = write_model(work / f"model_{count}", count, host_target(), [*host_compiler(), "-O1"])
        output, data = work / f"profiled_{count}", work / f"profile_{count}"
        shutil.rmtree(output, ignore_errors=True)
        execute([sys.executable, "-m", "cProfile", "-o", data, "-m", *generate(manifest, output)[2:]])
        # Positions (file, line, name) and (calls, calls that are not recursive, own seconds, ...): see pstats.
        found.append(pstats.Stats(str(data)).stats)
    small, large = found
    rows = []
    for position, (_, calls, own, *_) in sorted(large.items(), key=lambda item: -item[1][2])[:shown]:
        file, line, name = position
        where = "/".join(Path(file).parts[-2:]) + f":{line}" if line else "built in"
        before = small[position][2] if position in small else 0.0
        rows.append([f"`{name}` ({where})", calls, before, own, own / before if before else "-"])
    title = "Own seconds by function, under cProfile (which overstates the cost of calls)."
    report.table(title, ["function", "calls", *(f"{n:,} operators" for n in sizes[-2:]), "growth"], rows)


def main() -> int:
    """Measure, print, compare with the limits."""
    options = parser(__doc__)
    options.add_argument("--sizes", type=positive, nargs="+", default=list(SIZES), metavar="N", help="operators")
    options.add_argument("--repeat", type=positive, default=5, help="runs of each (default: %(default)s)")
    options.add_argument(
        "--profile",
        type=positive,
        metavar="ROWS",
        help="also show the costliest functions of the two largest sizes",
    )
    given = options.parse_args()
    report = Report("Generation")
    try:
        opwest_command()
        host_target()
        host_compiler()
    except SkippedError as reason:
        report.skip("generation", reason)
        return report.finish(given.json)
    if given.keep is not None:
        return run(given, given.keep, report)
    with tempfile.TemporaryDirectory(prefix="opwest-generation-") as work:
        return run(given, Path(work), report)


def run(given: argparse.Namespace, work: Path, report: Report) -> int:
    """Measure every size in a directory."""
    costs = {}
    os.environ["PYTHONPYCACHEPREFIX"] = str(work / "pycache")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    measure_size(work, min(given.sizes), 1)  # no measured run compiles Python or templates
    for count in sorted(given.sizes):
        costs[count] = measure_size(work, count, given.repeat)
    rows = [
        [f"{count:,}", first.cpu, first.wall, first.peak / 1024, again.cpu, again.wall, again.peak / 1024]
        for count, (first, again) in costs.items()
    ]
    report.table(
        f"Seconds and MiB of `opwest generate`, {given.repeat} runs each.",
        ["operators", "CPU s", "clock s", "peak MiB", "again: CPU s", "clock s", "peak MiB"],
        rows,
    )
    measure_kinds(work, report, given.repeat)
    start_up = measure_start_up(work)
    generating = f"instructions: generate of {OPERATORS} operators / imports of Jinja, PyYAML, numpy"
    report.limit(generating, start_up.generate, MAX_GENERATE_RATIO)
    report.limit("instructions: generate of examples/digits / the same imports", start_up.digits, MAX_DIGITS_RATIO)
    report.limit("instructions: --version / the same imports", start_up.version, MAX_VERSION_RATIO)
    ratios = [[name, ratio] for name, ratio in measure_times(work).items()]
    report.table("Processor time / that of the same imports, medians of 10 pairs.", ["command", "ratio"], ratios)
    if 100 in costs:
        report.limit("processor time for 100 operators", costs[100][0].cpu, MAX_SECONDS, " s")
    if 10_000 in costs:
        report.limit("processor time for 10,000 operators", costs[10_000][0].cpu, MAX_LARGE_SECONDS, " s")
    if {10, 1_000, 10_000} <= costs.keys():
        for index, what in enumerate(("first generation", "unchanged regeneration")):
            least, small, large = (costs[count][index].cpu for count in (10, 1_000, 10_000))
            report.limit(f"growth from 1,000 to 10,000, {what}", (large - least) / (small - least), MAX_GROWTH)
    print()
    if given.profile and len(given.sizes) > 1:
        profile(work, sorted(given.sizes), report, given.profile)
    return report.finish(given.json)


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""All model files of directories through `opwest import`: the result, or the reason; arena, constants and code.

A file is compared with its runtime on one input (`--compare 1`); without the comparison if the runtime cannot run it.
The arena is the planned workspace of the model, beside its lower bound. Code is the text section of the operators for a
Cortex-M4 with -O2; operators of CMSIS-NN and the C library are not in it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from common import Report, SkippedError, execute, opwest_command, parser, positive, require

COMPILE = ("arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb", "-O2", "-c")
SUFFIXES = (".tflite", ".lite", ".onnx")
LARGEST = 8_000_000
"""The most bytes of a file that is compared."""
Row = list[Any]


def files_of(folders: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """Yield the model files below directories, with their names."""
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                yield path, str(path.relative_to(folder))


def attempt(path: Path, out: Path, options: Sequence[str], seconds: int) -> tuple[int, str]:
    """Import a file; return the exit code and the errors and results."""
    command = [*opwest_command(), "import", str(path), "-o", str(out), *options]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return -1, f"error: not finished after {seconds} s"
    return done.returncode, done.stdout + done.stderr


def measured(path: Path, name: str, work: Path, seconds: int) -> Iterator[Row]:
    """Yield a row for each model of a file."""
    out = Path(tempfile.mkdtemp(dir=work)) / "model"
    begin = time.perf_counter()
    small = path.stat().st_size <= LARGEST
    code, text = attempt(path, out, ["--compare", "1"] if small else ["--vectors", "0"], seconds)
    result = "equal" if "no difference" in text else next(iter(re.findall(r"float result (\S+)", text)), "imported")
    if code and "the runtime of the format cannot run" in text:
        code, text = attempt(path, out, [], seconds)
        result = "imported, not compared"
    took = time.perf_counter() - begin
    if code:
        yield [name, path.stat().st_size, reason_of(text), "-", "-", "-", "-", took]
        return
    for manifest in sorted(out.rglob("manifest.yaml")):
        label = name if manifest.parent == out else f"{name}: {manifest.parent.name}"
        yield [label, path.stat().st_size, result, *sizes(manifest), took]


def sizes(manifest: Path) -> Row:
    """Return the bytes of the arena, its lower bound, the constants and the code."""
    found = json.loads(execute([*opwest_command(), "check", "--json", manifest]))["result"][0]
    pools = found["pools"]
    source, made = manifest.parent / "operators.c", manifest.parent / "operators.o"
    code = 0
    if source.is_file():
        execute([*COMPILE, source, "-o", made])
        code = int(execute(["arm-none-eabi-size", made]).splitlines()[1].split()[0])
    sums = [sum(one[key] for one in pools) for key in ("bytes", "lower_bound_bytes")]
    return [*sums, found["constant_bytes"], code]


def reason_of(text: str) -> str:
    """Return the first error without its place and without names of tensors."""
    found = next(iter(re.findall(r"error: (.*)", text)), text.strip()[-80:])
    found = re.sub(r"operator \d+(?: '[^']*')? \(([^)]*)\)(?:, result '.*?')?: ", r"\1: ", found)
    return re.sub(r"'[^']*'", "a tensor", found)[:90]


def main() -> int:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("folders", metavar="DIR", type=Path, nargs="*", help="directories with model files")
    options.add_argument("--seconds", type=positive, default=400, metavar="S", help="limit of one import (400)")
    given = options.parse_args()
    report = Report("Model files")
    try:
        require("arm-none-eabi-gcc", "arm-none-eabi-size")
        if not given.folders:
            raise SkippedError("no directory is given: python benchmarks/model_files.py DIR")
    except SkippedError as reason:
        report.skip("model files", reason)
        return report.finish(given.json)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        work = given.keep or Path(folder)
        work.mkdir(parents=True, exist_ok=True)
        for path, name in files_of(given.folders):
            rows += measured(path, name, work, given.seconds)
    if not rows:
        report.skip("model files", f"no {', '.join(SUFFIXES)} in {', '.join(map(str, given.folders))}")
        return report.finish(given.json)
    columns = ["model", "file", "result", "arena", "lower bound", "constants", "code", "s"]
    report.table("Bytes. A number as result: the largest difference of a float result.", columns, rows)
    reasons = Counter(row[2] for row in rows if row[3] == "-")
    if reasons:
        counts = [list(one) for one in reasons.most_common()]
        report.table("Files that are refused, by reason.", ["reason", "files"], counts)
    return report.finish(given.json)


if __name__ == "__main__":
    sys.exit(main())

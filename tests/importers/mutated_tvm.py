# SPDX-License-Identifier: Apache-2.0
"""Damaged model files through TVM's importer, each in the child process of `opwest import tvm`.

    make mutated-tvm                                   300 files, seed 1
    python tests/importers/mutated_tvm.py --runs 50 --seed 7

Every file must result in a complete directory that `opwest check` accepts, or in errors with a position and no
output, within the limits below. The last line counts both; exit code 1 and the file's name for any other result.
"""

import argparse
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # as a script

from importers.onnx_made import two_by_two
from importers.tflite_made import average_pool
from models.damage import damaged
from opwest.base.diagnostics import Diagnostics, OpwestError
from opwest.frontends.tvm import Options
from opwest.frontends.tvm.child import import_in_child
from projects import check

MOST_KIB = 6 << 20
MOST_SECONDS = 120.0
"""Of one import, in wall-clock time."""


class Outcome(NamedTuple):
    """The result of one file: imported, refused, or the fault."""

    kind: str
    seconds: float
    said: str


def attempt(content: bytes, suffix: str, work: Path) -> Outcome:
    """Import one file in an empty directory."""
    file, folder = work / f"model{suffix}", work / "out"
    file.write_bytes(content)
    begin = time.monotonic()
    kind, said = "imported", ""
    try:
        import_in_child(file, folder, Options(vectors=0))
        check([folder / "manifest.yaml"], Diagnostics())
    except OpwestError as error:
        kind, said = "refused", str(error)
        if "error: " not in said or "internal error" in said or file.name not in said:
            kind = "an unclear message"
        elif folder.exists():
            kind = "a folder after an error, or one that check refuses"
    except Exception as error:  # not expected: reported with its file
        kind, said = f"a {type(error).__name__}", str(error)
    seconds = time.monotonic() - begin
    allowed = {file.name, "out"} if kind == "imported" else {file.name}
    if kind in ("imported", "refused") and {one.name for one in work.iterdir()} != allowed:
        kind = "other files"
    if seconds > MOST_SECONDS:
        kind = f"more than {MOST_SECONDS:g} s"
    return Outcome(kind, seconds, said)


def main() -> int:
    """Run and count."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runs", type=int, default=300)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    pools = [(".tflite", average_pool(quantised)) for quantised in (False, True)]
    originals = [*pools, (".onnx", two_by_two().SerializeToString())]

    def one(number: int) -> Outcome:
        source = random.Random(given.seed * 1_000_003 + number)
        suffix, content = originals[number % len(originals)]
        content = damaged(content, source)
        with tempfile.TemporaryDirectory(prefix="opwest-mutated-") as work:
            outcome = attempt(content, suffix, Path(work))
        if outcome.kind not in ("imported", "refused"):
            kept = Path(tempfile.gettempdir()) / f"opwest-mutated-{given.seed}-{number}{suffix}"
            kept.write_bytes(content)
            print(f"{kept}: {outcome.kind}: {outcome.said[:300]}", flush=True)
        if (number + 1) % 50 == 0:
            print(f"{number + 1} of {given.runs}", flush=True)
        return outcome

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(one, range(given.runs)))
    kinds = Counter(outcome.kind for outcome in found)
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f"largest process: {memory >> 10} MiB, longest import: {max(o.seconds for o in found):.1f} s")
    print(", ".join(f"{count} {kind}" for kind, count in kinds.most_common()))
    return int(set(kinds) - {"imported", "refused"} != set() or memory > MOST_KIB)


if __name__ == "__main__":
    sys.exit(main())

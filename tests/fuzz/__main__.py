# SPDX-License-Identifier: Apache-2.0
"""`make fuzz`: mutated inputs for every reader of untrusted input in opwest.

Each reader runs in a separate process with limits on memory and processor time. A failing input is minimised and
stored in tests/fuzz/regressions.zip, which the test suite replays. Exit code 1 if there was a failure.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import fuzz_paths  # noqa: F401
from fuzz_engine import Current, Failure, fuzz, limit_process, store
from fuzz_readers import Reader, readers

HANGS_AFTER = 900.0
"""Seconds without a new input after which a process is ended: C code that does not return."""
_RESTARTS = 20
_OWN_FAULT = 3
"""The exit code of a worker if the fuzzer itself failed: exceptions of readers are caught."""


def main() -> int:
    """Run the fuzzers; print one row for each."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--reader", action="append", default=[], metavar="NAME", choices=sorted(readers()))
    options.add_argument("--runs", type=int, metavar="N", help="inputs for each reader (default: its own number)")
    options.add_argument("--seconds", type=float, metavar="S", help="at most so long for each reader")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="readers at once")
    options.add_argument("--json", type=Path, metavar="FILE", help="write the rows to FILE as well")
    options.add_argument("--worker", type=Path, metavar="DIR", help=argparse.SUPPRESS)
    options.add_argument("--start", type=int, default=0, help=argparse.SUPPRESS)
    given = options.parse_args()
    chosen = [readers()[name] for name in given.reader] or [one for one in readers().values() if one.is_available]
    if given.worker is not None:
        return _work(chosen[0], given)
    print(f"# Fuzzing, seed {given.seed}\n\n| reader | inputs | CPU s | defects |\n|---|---:|---:|---:|", flush=True)
    with ThreadPoolExecutor(given.jobs) as pool:
        rows = list(pool.map(lambda reader: _campaign(reader, given), chosen))
    if given.json is not None:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(rows, indent=2) + "\n")
    for row in rows:
        for defect in row["defects"]:
            print(f"\n{row['reader']}: {defect['key']}, stored in {defect['file']}\n{defect['trace']}")
    return int(any(row["defects"] for row in rows))


def _campaign(reader: Reader, given: argparse.Namespace) -> dict[str, Any]:
    """Run one reader to its end, in as many processes as needed."""
    row: dict[str, Any] = {"reader": reader.name, "inputs": 0, "cpu_seconds": 0.0, "defects": []}
    runs = given.runs or reader.runs
    for restart in range(_RESTARTS):
        with tempfile.TemporaryDirectory(prefix="opwest-fuzz-", dir=_memory()) as work:
            ended = _process(reader, given, runs, row["inputs"], restart, Path(work))
            for line in (Path(work) / "found").read_text().splitlines() if (Path(work) / "found").exists() else []:
                defect = json.loads(line)
                if defect["key"] not in {d["key"] for d in row["defects"]}:
                    row["defects"].append(defect)
            if (Path(work) / "done").exists():
                done = json.loads((Path(work) / "done").read_text())
                row["inputs"], row["cpu_seconds"] = done["inputs"], round(row["cpu_seconds"] + done["cpu"], 1)
                break
            number, content = Current.read(Path(work) / "current")
            if ended.startswith(f"exit code {_OWN_FAULT}:"):
                raise RuntimeError(f"the fuzzer of {reader.name} failed behind input {number}: {ended}")
            failure = Failure(reader.name, f"the process ended: {ended}", content, "")
            row["defects"].append(_stored(failure))
            row["inputs"] = max(number, row["inputs"]) + 1
    print(f"| {reader.name} | {row['inputs']:,} | {row['cpu_seconds']:,} | {len(row['defects'])} |", flush=True)
    return row


def _memory() -> str | None:
    """Return a file system in memory, if there is one."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _process(reader: Reader, given: argparse.Namespace, runs: int, start: int, restart: int, work: Path) -> str:
    """Run a worker until it ends or makes no progress; return its exit code."""
    command = [sys.executable, str(Path(__file__).parent), "--reader", reader.name, "--runs", str(runs)]
    command += ["--seed", str(given.seed + 1000 * restart), "--start", str(start), "--worker", str(work)]
    command += ["--seconds", str(given.seconds)] if given.seconds is not None else []
    with (work / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        seen, since = -1, time.monotonic()
        while process.poll() is None:
            time.sleep(0.2)
            number = Current.read(work / "current")[0] if (work / "current").exists() else 0
            if number != seen:
                seen, since = number, time.monotonic()
            elif time.monotonic() - since > HANGS_AFTER:
                process.kill()
                process.wait()
                return "it stood still"
    return f"exit code {process.returncode}: {(work / 'log').read_text(errors='replace')[-1000:]}"


def _stored(failure: Failure) -> dict[str, str]:
    store(failure.name, failure.content)
    return {"key": failure.key, "file": failure.name, "trace": failure.trace}


def _work(reader: Reader, given: argparse.Namespace) -> int:
    """Run the worker process."""
    work: Path = given.worker
    current = Current(work / "current")
    limit_process()
    folder = work / "files"
    folder.mkdir()
    try:
        limits = {"runs": given.runs, "seconds": given.seconds, "start": given.start}
        for found in fuzz(reader, folder, seed=given.seed, **limits, note=current.note):
            if isinstance(found, Failure):
                with (work / "found").open("a") as file:
                    file.write(json.dumps(_stored(found)) + "\n")
            else:
                used = os.times()
                cpu = used.user + used.system + used.children_user + used.children_system
                (work / "done").write_text(json.dumps({"inputs": found, "cpu": cpu}))
    except Exception:
        traceback.print_exc()
        return _OWN_FAULT
    return 0


if __name__ == "__main__":
    sys.exit(main())

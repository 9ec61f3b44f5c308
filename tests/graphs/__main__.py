# SPDX-License-Identifier: Apache-2.0
"""The campaign of random graphs: `python tests/graphs --count 20000 --jobs 2`."""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests")]


def main():
    """Run the campaign; store what it finds."""
    from graphs.campaign import FAULTS, Runner
    from graphs.runs import campaign, table
    from graphs.shrink import keep

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--no-cores", action="store_true")
    parser.add_argument("--json", type=Path, default=ROOT / "build" / "graphs.jsonl")
    options = parser.parse_args()
    options.json.parent.mkdir(exist_ok=True)
    started = time.monotonic()
    with options.json.open("w", encoding="utf-8") as stream:

        def write(one):
            stream.write(json.dumps(one) + "\n")
            stream.flush()
            if one["outcome"] in FAULTS:
                print(f"seed {one['seed']}: {one['outcome']}: {one['options']}: {one['detail'][:600]}", flush=True)

        outcomes = campaign(options.first, options.count, options.jobs, options.seconds, not options.no_cores, write)
    print("\n".join(table(outcomes)))
    print(f"{time.monotonic() - started:.0f} s")
    faults = [one for one in outcomes if one["outcome"] in FAULTS]
    with tempfile.TemporaryDirectory() as folder:
        for one in faults[:20]:
            print("shrunk:", keep(Runner(folder, {}), one), flush=True)
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())

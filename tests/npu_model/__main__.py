# SPDX-License-Identifier: Apache-2.0
"""Run a payload on files: `python -m npu_model PAYLOAD REGION... [-o DIR] [--trace]`, with tests/ in PYTHONPATH."""

import argparse
import sys
from pathlib import Path

from npu_model.commands import Command
from npu_model.faults import NpuError
from npu_model.machine import execute


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="npu_model", description="Run a command stream of an Ethos-U55.")
    parser.add_argument("payload", type=Path, help="the payload of the driver, as in the operator that Vela writes")
    help_of_regions = "the content of regions 0, 1, ...; a file given twice is one region"
    parser.add_argument("regions", type=Path, nargs="+", metavar="REGION", help=help_of_regions)
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="write the regions there: region0.bin, ...")
    parser.add_argument("--trace", action="store_true", help="print the operations")
    given = parser.parse_args(arguments)
    files = {file: bytearray(file.read_bytes()) for file in given.regions}
    regions = [files[file] for file in given.regions]

    def trace(command: Command, *_: object) -> None:
        print(f"{command.position:8} {command.name} {command.parameter}")

    try:
        execute(given.payload.read_bytes(), regions, trace if given.trace else None)
    except NpuError as error:
        print(f"{given.payload}: error: {error}", file=sys.stderr)
        return 1
    if given.output is not None:
        given.output.mkdir(parents=True, exist_ok=True)
        for number, content in enumerate(regions):
            (given.output / f"region{number}.bin").write_bytes(content)
    return 0


if __name__ == "__main__":
    sys.exit(main())

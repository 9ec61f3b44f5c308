# SPDX-License-Identifier: Apache-2.0
"""Real directories in Model Library Format: their imports against TVM's own main, on this host and in QEMU.

    make unpacked-models MODELS="DIRECTORY[,NAME=SHAPE...] ..."
    python tests/importers/unpacked_models.py [--host] [--qemu] [--steps] [--cases N] DIRECTORY[,NAME=SHAPE...]...

SHAPE is that of an input or output that the directory does not record: input_1=1x49x10x1. Without arguments, the
directories are those of the variable OPWEST_MLF_MODELS, separated by spaces. Each is imported; the import and the
original main are compiled by the same compiler and run on the same random inputs. The outputs must be equal bit for
bit. The table contains the steps, and the bytes of memory in TVM's plan and in opwest's. With --steps, a main that is
not unpacked, or needs more bytes than in TVM's plan, is an error. In QEMU the board is mps2/an385, or mps2/an386 for
code that requires a Cortex-M4. On the host, CMSIS-NN is $CMSIS_NN or the module of the workspace.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # as a script

import pytest
from opwest.base.diagnostics import OpwestError
from opwest.frontends.mlf import Options
from opwest.frontends.mlf.draft import TensorOption
from unpacked_support import NotHere, Real, compared, compared_in_qemu

VARIABLE = "OPWEST_MLF_MODELS"


def real(text: str) -> Real:
    """Return a directory with the shapes of its inputs and outputs."""
    path, *shapes = text.split(",")
    pairs = [one.split("=") for one in shapes]
    tensors = {name: TensorOption(None, tuple(int(n) for n in shape.split("x"))) for name, shape in pairs}
    return Real(Path(path), Options("mine", tensors=tensors))


def main() -> int:
    """Compare all directories; exit code 1 if outputs differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", nargs="*", metavar="DIRECTORY[,NAME=SHAPE...]")
    parser.add_argument("--host", action="store_true", help="only on this host")
    parser.add_argument("--qemu", action="store_true", help="only in QEMU")
    parser.add_argument("--steps", action="store_true", help="require steps, with at most the bytes of TVM's plan")
    parser.add_argument("--cases", type=int, default=20, help="inputs on the host (default: 20; QEMU: a quarter)")
    options = parser.parse_args()
    chosen = [real(text) for text in options.directories or os.environ.get(VARIABLE, "").split()]
    if not chosen:
        print(f"skipped: no directory given, and {VARIABLE} is not set")
        return 0
    failed = 0
    for one in chosen:
        for where, compare in (("host", compared), ("qemu", compared_in_qemu)):
            if (options.host and where == "qemu") or (options.qemu and where == "host"):
                continue
            cases = options.cases if where == "host" else max(options.cases // 4, 1)
            with tempfile.TemporaryDirectory() as work:
                try:
                    done = compare(one, Path(work), cases)
                    result = done.words()
                    if options.steps and not (done.plan and done.plan[3] <= done.plan[2]):
                        failed += 1
                        result = f"FAILED: {result}"
                except NotHere as reason:
                    result = f"skipped: {reason}"
                except (OpwestError, AssertionError, pytest.fail.Exception) as fault:
                    failed += 1
                    result = f"FAILED: {fault}"
            print(f"{one.path} {where}: {result}", flush=True)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())

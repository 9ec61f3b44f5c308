# SPDX-License-Identifier: Apache-2.0
"""`python -m opwest`, and the command `opwest`."""

from __future__ import annotations

import gc
import sys


def main(arguments: list[str] | None = None, program: str = "opwest") -> int:
    """Run the command line; report a missing package of an incomplete installation."""
    collecting = gc.isenabled()
    gc.disable()  # saves a fourth of the time of a large model, and the passes during imports
    try:
        return _run(arguments, program)
    finally:
        gc.freeze()  # the process ends: the interpreter need not look for cycles among all objects first
        if collecting:
            gc.enable()


def _run(arguments: list[str] | None, program: str) -> int:
    try:
        from opwest.cli.main import main as run
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        if name in ("", "opwest"):
            raise
        print(
            f"{program}: error: the Python package {name!r} is not installed for {sys.executable}\n"
            "  hint: run `west packages pip --install` in a Zephyr workspace, or `pip install -r requirements.txt` in "
            "the opwest repository",
            file=sys.stderr,
        )
        return 2
    return run(arguments, program)


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""`python -m opwest`, and the command `opwest`."""

from __future__ import annotations

import sys


def main(arguments: list[str] | None = None, program: str = "opwest") -> int:
    """Run the command line; report a missing package of an incomplete installation."""
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

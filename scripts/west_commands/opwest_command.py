# SPDX-License-Identifier: Apache-2.0
"""`west opwest`: the command line of opwest as a west command."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from west.commands import WestCommand

GENERATOR = Path(__file__).resolve().parents[2] / "generator"


class OpwestCommand(WestCommand):
    """Pass all arguments of `west opwest` to opwest."""

    def __init__(self) -> None:
        super().__init__(
            "opwest",
            "generate, check and run models of compiled operators",
            "All arguments are passed to opwest. `west opwest --help` lists its commands.",
            accepts_unknown_args=True,
        )

    def do_add_parser(self, parser_adder: Any) -> argparse.ArgumentParser:
        """Add a parser without options, not even --help."""
        parser: argparse.ArgumentParser = parser_adder.add_parser(
            self.name, help=self.help, description=self.description, add_help=False, prefix_chars="\0"
        )
        return parser

    def do_run(self, args: argparse.Namespace, unknown: list[str]) -> None:
        """Run opwest from this repository."""
        sys.path.insert(0, str(GENERATOR))
        from opwest.__main__ import main

        sys.exit(main(unknown, "west opwest"))

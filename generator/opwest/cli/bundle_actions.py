# SPDX-License-Identifier: Apache-2.0
"""The actions of `opwest bundle`, and the options that have an effect with each."""

from __future__ import annotations

import argparse
from types import MappingProxyType

from opwest.bundles.store import is_bundle
from opwest.diagnostics import Diagnostics, Location

MAKE, SIGN = "make", "sign"
"""The actions without an option of their own: FILE is a manifest, or a bundle."""
_BOARD = (
    *("board", "application", "transport", "group", "serial", "baud", "timeout"),
    *("build_dir", "no_build", "no_flash", "zephyr_base"),
)
_MAKING = (
    *("slot", "llext", "build", "target", "cc", "variant", "model_version", "vectors", "steps", "observable"),
    *("header", "depfile"),
)
PERMITTED = MappingProxyType(
    {
        "install": _BOARD,
        "list": _BOARD,
        "confirm": _BOARD,
        "roll_back": _BOARD,
        "check_steps": (*_BOARD, "variant"),
        "export_key": (),
        "verify": ("public_key",),
        SIGN: ("key", "output"),
        MAKE: (*_MAKING, "key", "unsigned", "output"),
    }
)
"""The options, besides those of the output of the command, by action. An action takes precedence over later ones."""


def check_bundle_options(options: argparse.Namespace, faults: Diagnostics) -> None:
    """Report options that have no effect with the action."""
    action = _action(options)
    known = {name for names in (PERMITTED, *PERMITTED.values()) for name in names}
    for name, value in vars(options).items():
        if name in known - {action, *PERMITTED[action]} and value not in (None, False, []):
            _report(name, action, options, faults)
    if action == "check_steps" and options.variant is not None and options.file is None:
        faults.error("--variant requires a manifest")


def _action(options: argparse.Namespace) -> str:
    """Return the key of the table."""
    named = (name for name in PERMITTED if vars(options).get(name) not in (None, False))
    return next(named, SIGN if options.file is not None and is_bundle(options.file) else MAKE)


def _report(name: str, action: str, options: argparse.Namespace, faults: Diagnostics) -> None:
    """Report an option."""
    if action not in (MAKE, SIGN):
        faults.error(f"{_option(name)} has no effect with {_option(action)}")
    elif name in PERMITTED[MAKE]:
        faults.error(f"{_option(name)} has no effect on a bundle", Location(str(options.file)))
    else:
        *others, last = (_option(other) for other, names in PERMITTED.items() if name in names)
        faults.error(f"{_option(name)} requires {', '.join(others)}{' or ' if others else ''}{last}")


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"

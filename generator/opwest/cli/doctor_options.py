# SPDX-License-Identifier: Apache-2.0
"""The arguments of `opwest doctor`, separate from its implementation, which is imported on demand."""

from __future__ import annotations

import argparse

from opwest.diagnostics import nearest


def add_doctor_options(doctor: argparse.ArgumentParser) -> None:
    """Add the arguments of `opwest doctor`."""
    doctor.add_argument(
        "features", metavar="FEATURE", nargs="*", type=_feature, help="feature to examine (default: all)"
    )


def _feature(name: str) -> str:
    """Return the name of a feature. Raises ArgumentTypeError for an unknown one."""
    from opwest.doctor.features import FEATURES  # only names of features need it

    names = [one.name for one in FEATURES]
    if name not in names:
        raise argparse.ArgumentTypeError(f"unknown feature {name!r}: {nearest(name, names)}")
    return name

# SPDX-License-Identifier: Apache-2.0
"""The Zephyr of a call: boards, version and tree."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from opwest.base.diagnostics import Diagnostics, fail
from opwest.zephyr.version import parse_version
from opwest.zephyr.workspace import ZephyrOptions, fault_of_base, find_workspace


def warn_of_base(zephyr_base: Path | None, faults: Diagnostics) -> None:
    """Warn about a ZEPHYR_BASE that is no Zephyr tree."""
    wrong = fault_of_base() if zephyr_base is None else None
    if wrong is not None:
        faults.warning(wrong, hint="boards, modules and Kconfig symbols are not checked")


def zephyr_options(
    boards: tuple[str, ...], zephyr_version: str | None, zephyr_base: Path | None, application: Path | None = None
) -> ZephyrOptions:
    """Return the boards, version and workspace of Zephyr that were given, or those of the current workspace.

    `application` is a directory that may define boards. Raises OpwestError.
    """
    workspace = find_workspace(zephyr_base)
    if zephyr_base is not None and (workspace is None or workspace.version is None):
        raise fail(f"'{zephyr_base}' is not a Zephyr tree: missing file 'VERSION'")
    if workspace is not None and application is not None:
        workspace = replace(workspace, roots=(application,))
    version = None
    if zephyr_version is not None:
        version = parse_version(zephyr_version)
        if version is None:
            message = f"invalid --zephyr-version {zephyr_version!r}"
            raise fail(message, expected="a version, such as 4.2 or 3.7.1")
        if workspace is not None and workspace.version is not None and workspace.version.pair != version.pair:
            if zephyr_base is not None:
                message = f"--zephyr-base has no effect: '{zephyr_base}' is Zephyr {workspace.version}"
                raise fail(message, expected=f"Zephyr {version}, as --zephyr-version")
            workspace = None  # the current workspace has another version of Zephyr
    return ZephyrOptions(boards, version, workspace)

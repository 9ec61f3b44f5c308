# SPDX-License-Identifier: Apache-2.0
"""The output of `opwest bundle`: bundles that were made, signed or verified, and public keys."""

from __future__ import annotations

import argparse
from typing import Any

from opwest.api.bundle import BundleResult
from opwest.api.bundle import bundle as make_bundle
from opwest.api.calls import collecting
from opwest.base.diagnostics import Diagnostics
from opwest.base.result import Result, counted
from opwest.bundles.explanation import as_json
from opwest.bundles.format import LLEXT
from opwest.bundles.signing import c_initialiser

_NAMES = (
    *("output", "slot", "llext", "build", "target", "cc", "variant", "model_version", "vectors", "steps", "observable"),
    *("header", "depfile", "key", "unsigned", "verify", "public_key", "export_key"),
)


def bundle(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Do what the options request."""
    values: dict[str, Any] = {name: getattr(options, name) for name in _NAMES}
    done = collecting(make_bundle, faults)(options.file, **values)
    if done.public_key is not None:
        key = done.public_key
        heading = f"/* {options.export_key.name}: key {key.id}, for struct opwest_bundle_key */"
        return Result(
            f"{heading}\n{c_initialiser(key.raw)}", {"key": key.id, "public_key": key.raw.hex()}, is_content=True
        )
    assert done.bundle is not None
    fields = as_json(str(done.file), done.bundle)
    if done.action == "make":
        return Result(_made(done), {**fields, "vector_count": done.vectors, "step_count": done.steps})
    if done.action == "sign":
        signatures = counted(len(done.bundle.signatures), "signature")
        return Result(f"{done.file}: {counted(len(done.bundle.data), 'byte')}, {signatures}", fields)
    names = [str(path) for path in done.valid]
    content = done.bundle.content
    text = f"{done.file}: {content.name} {content.version_text}: valid signature by {', '.join(names)}"
    return Result(text, {**fields, "valid": names})


def _made(done: BundleResult) -> str:
    assert done.bundle is not None
    content = done.bundle.content
    place = "for LLEXT" if content.kind == LLEXT else f"for the slot at 0x{content.slot_address:x}"
    return (
        f"{done.file}: {content.name} {content.version_text} {place}: {counted(len(done.bundle.data), 'byte')}, "
        f"{counted(done.vectors, 'golden vector')}, {counted(len(done.bundle.signatures), 'signature')}"
    )

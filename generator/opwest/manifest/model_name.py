# SPDX-License-Identifier: Apache-2.0
"""Print the name of the model of a manifest, for opwest_add_bundle(): python -m opwest.manifest.model_name FILE."""

from __future__ import annotations

import sys
from pathlib import Path

from opwest.base.diagnostics import Diagnostics
from opwest.manifest.load import load_manifest
from opwest.manifest.located import Mapping


def main(path: str) -> int:
    """Print the name, or the errors in the manifest, and return the exit code."""
    faults = Diagnostics()
    manifest = load_manifest(Path(path), faults)
    for fault in faults:
        print(fault, file=sys.stderr)
    if not isinstance(manifest, Mapping):
        return 1
    print(manifest["model"])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

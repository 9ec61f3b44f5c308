# SPDX-License-Identifier: Apache-2.0
"""Write the identifiers of the SPDX licence list, those of the package `packaging`, for `opwest report --sbom`."""

from __future__ import annotations

from pathlib import Path

from packaging.licenses import _spdx  # type: ignore[attr-defined]

LIST = Path(__file__).resolve().parents[1] / "generator/opwest/model/readers/spdx_licences.txt"


def text() -> str:
    """Return the content of the file."""
    origin = f"scripts/spdx_licences.py wrote this: the SPDX licence list {_spdx.VERSION}."
    head = f"# SPDX-License-Identifier: CC0-1.0\n# {origin}\n"
    licences, exceptions = ("".join(f"{one['id']}\n" for one in t.values()) for t in (_spdx.LICENSES, _spdx.EXCEPTIONS))
    return f"{head}{licences}# exceptions\n{exceptions}"


if __name__ == "__main__":
    LIST.write_text(text(), encoding="ascii")

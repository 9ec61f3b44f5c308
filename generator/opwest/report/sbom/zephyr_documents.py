# SPDX-License-Identifier: Apache-2.0
"""The document of an image that Zephyr's `west spdx` wrote, `build.spdx`, as a document to refer to."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Final, NamedTuple

from opwest.diagnostics import Diagnostic, Location, OpwestError
from opwest.report.sbom.document import ExternalDocument

REFERENCE: Final = "DocumentRef-zephyr-build"
_EXPECTED: Final = "build.spdx, as 'west spdx' writes it to build/spdx/"
_LARGEST: Final = 1 << 28


class ZephyrBuild(NamedTuple):
    """A document, and the identifier of the linked image in it."""

    document: ExternalDocument
    image: str


def read_build(path: Path) -> ZephyrBuild:
    """Return the document. Raises OpwestError if it is not one of `west spdx` with an image."""
    try:
        if path.stat().st_size > _LARGEST:
            raise _fault(path, f"more than {_LARGEST} bytes")
        content = path.read_bytes()
    except OSError as error:
        raise _fault(path, error.strerror or str(error)) from None
    text = content.decode("utf-8", errors="replace")
    namespace = re.search(r"^DocumentNamespace: (\S+)$", text, re.MULTILINE)
    if not text.startswith("SPDXVersion: SPDX-2.") or namespace is None:
        raise _fault(path, "not a tag-value document of SPDX 2")
    image = re.search(r"^FileName: \./zephyr/zephyr\.elf\nSPDXID: (SPDXRef-[A-Za-z0-9.-]+)$", text, re.MULTILINE)
    if image is None:
        raise _fault(path, "it does not contain zephyr/zephyr.elf")
    return ZephyrBuild(ExternalDocument(REFERENCE, namespace[1], hashlib.sha1(content).hexdigest()), image[1])


def _fault(path: Path, reason: str) -> OpwestError:
    return OpwestError(
        [Diagnostic("error", f"cannot read the document of the image: {reason}", Location(str(path)), _EXPECTED)]
    )

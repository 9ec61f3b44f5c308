# SPDX-License-Identifier: Apache-2.0
"""The document of an image that Zephyr's `west spdx` wrote, `build.spdx`, as a document to refer to."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from opwest.diagnostics import Diagnostic, Diagnostics, Location, OpwestError
from opwest.report.sbom.document import ExternalDocument

REFERENCE: Final = "DocumentRef-zephyr-build"
_EXPECTED: Final = "build.spdx, as 'west spdx' writes it to build/spdx/"
_LARGEST: Final = 1 << 28
_IMAGE: Final = (
    r"^FileName: \./zephyr[/\\]zephyr\.elf\nSPDXID: (SPDXRef-[A-Za-z0-9.-]+)$(?:\nFileChecksum: SHA1: ([0-9a-f]{40})$)?"
)


class ZephyrBuild(NamedTuple):
    """A document, and the identifier of the linked image in it."""

    document: ExternalDocument
    image: str
    sha1: str | None
    """The checksum of the image in the document."""


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
    image = re.search(_IMAGE, text, re.MULTILINE)
    if image is None:
        raise _fault(path, "it does not contain zephyr/zephyr.elf")
    return ZephyrBuild(ExternalDocument(REFERENCE, namespace[1], hashlib.sha1(content).hexdigest()), image[1], image[2])


def check_images(build: ZephyrBuild, document: Path, images: Sequence[Path], faults: Diagnostics) -> None:
    """Warn of images of another build than the document. native_sim's zephyr.exe is not in any document."""
    for image in images:
        if build.sha1 is not None and image.name == "zephyr.elf":
            found = hashlib.sha1(image.read_bytes()).hexdigest()
            if found != build.sha1:
                faults.warning(
                    f"the image is not that of '{document}': its SHA-1 is {found}",
                    Location(str(image)),
                    expected=build.sha1,
                    hint="build the application, then run 'west spdx' again",
                )


def _fault(path: Path, reason: str) -> OpwestError:
    return OpwestError(
        [Diagnostic("error", f"cannot read the document of the image: {reason}", Location(str(path)), _EXPECTED)]
    )

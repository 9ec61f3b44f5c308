# SPDX-License-Identifier: Apache-2.0
"""The licence of an installed package as an SPDX expression.

The sources, in this order: the field License-Expression (PEP 639), the field License, the classifiers, the licence
files, the first lines of the modules. A name of several licences, such as "BSD License", is not used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import Distribution

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

_BSD_OF_SPHINX = ("applehelp", "devhelp", "htmlhelp", "qthelp", "serializinghtml")
READ = {
    "docutils": "LicenseRef-Public-Domain AND BSD-2-Clause AND 0BSD",
    **{f"sphinxcontrib-{name}": "BSD-2-Clause" for name in _BSD_OF_SPHINX},
    "sphinxcontrib-jquery": "0BSD AND MIT",
}
"""Licences set by hand. docutils: COPYING lists several licences; its only file under the GPL, for Emacs, is not in the
wheel. sphinxcontrib: the metadata says "BSD License", the wheels have no licence file; BSD-2-Clause is
from metadata of another distribution, and no licence text was read. sphinxcontrib-jquery: LICENCE of its
source archive, and jQuery, which it contains."""
NAMES = {
    "3-clause bsd license": "BSD-3-Clause",
    "apache 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "bsd 2-clause license": "BSD-2-Clause",
    "bsd 3-clause license": "BSD-3-Clause",
    "isc license (iscl)": "ISC",
    "mit license": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "python software foundation license": "PSF-2.0",
    "the unlicense (unlicense)": "Unlicense",
}
"""Names in metadata that are not identifiers of SPDX, in lower case."""
PHRASES = {
    "apache license version 2.0": "Apache-2.0",
    "mozilla public license version 2.0": "MPL-2.0",
    "permission is hereby granted free of charge to any person obtaining a copy": "MIT",
    "redistributions in binary form must reproduce": "BSD-2-Clause",
    "this is free and unencumbered software released into the public domain": "Unlicense",
}
"""Texts of licences in lower case, without commas, with single spaces. The first one in a file names the licence."""
COPYLEFT = ("AGPL-", "CDDL-", "EPL-", "EUPL-", "GPL-", "LGPL-", "MPL-")
"""Beginnings of the identifiers of licences with copyleft."""
_LINES = 40
"""Lines at the beginning of a module that may contain a licence."""
_BSD = 700
"""Characters of the conditions of a BSD licence after the second."""


def licence(package: Distribution) -> str | None:
    """Return the SPDX expression of the licence of a package; None if no source names one licence."""
    fields = package.metadata
    classified = [one.split(" :: ")[-1] for one in fields.get_all("Classifier") or [] if one.startswith("License ::")]
    if package.name.lower() in READ:
        return READ[package.name.lower()]
    for name in (fields.get("License-Expression"), fields.get("License"), *classified):
        if name and (found := _of_name(name)):
            return found
    return next((found for text in _texts(package) if (found := _of_text(text))), None)


def has_copyleft(expression: str) -> bool:
    """Return whether an expression contains a licence with copyleft, also as a choice or with an exception."""
    return any(word.startswith(COPYLEFT) for word in re.split(r"[\s()]+", expression))


def _of_name(name: str) -> str | None:
    """Return the expression that a field or a classifier names; None for a text and for an unknown name."""
    if found := NAMES.get(name.strip().lower()):
        return found
    try:
        return str(canonicalize_license_expression(name))
    except InvalidLicenseExpression:
        return None


def _of_text(text: str) -> str | None:
    """Return the licence of the text of a licence, or of the first lines of a module."""
    if tag := re.search(r"SPDX-License-Identifier:\s*(.+)", text):
        return _of_name(tag[1].strip())
    plain = " ".join(re.sub(r"^\s*[#*]+", "", line) for line in text.lower().splitlines())
    plain = " ".join(plain.replace(",", " ").split())
    places = {plain.find(phrase): phrase for phrase in PHRASES if phrase in plain}
    if not places:
        return None
    start = min(places)
    found = PHRASES[places[start]]
    no_endorsement = re.search(r"\bnames? of\b.{0,150}\bto endorse or promote\b", plain[start : start + _BSD])
    return "BSD-3-Clause" if found.startswith("BSD") and no_endorsement else found


def _texts(package: Distribution) -> Iterator[str]:
    """Return the licence files of a package, then the first lines of its modules."""
    files = sorted(package.files or [], key=lambda one: (len(one.parts), str(one)))
    for file in files:
        if ".dist-info" in file.parts[0] and re.match(r"(?i)(licen[cs]e|copying)", file.name):
            yield file.locate().read_text(encoding="utf-8", errors="replace")
    for file in files:
        if file.suffix == ".py":
            head = file.locate().read_text(encoding="utf-8", errors="replace").splitlines()[:_LINES]
            yield "\n".join(head)

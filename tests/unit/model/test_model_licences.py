# SPDX-License-Identifier: Apache-2.0
"""Licence expressions: the grammar of SPDX 2.3, annex D, the spelling of the list, faults with hints."""

from __future__ import annotations

import pytest
from opwest.model.licences import identifiers, known, normal

BEFORE = "write it after a licence: GPL-2.0-only"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("mit", "MIT"),
        ("apache-2.0 or ( MIT and bsd-3-clause )", "Apache-2.0 OR (MIT AND BSD-3-Clause)"),
        ("gpl-2.0-only with classpath-exception-2.0", "GPL-2.0-only WITH Classpath-exception-2.0"),
        ("GPL-2.0+", "GPL-2.0+"),
        ("Apache-2.0+", "Apache-2.0+"),
        ("LicenseRef-Acme.1 WITH LLVM-exception", "LicenseRef-Acme.1 WITH LLVM-exception"),
        ("((MIT))", "((MIT))"),
    ],
)
def test_valid_expressions(given: str, expected: str) -> None:
    assert normal(given) == expected


@pytest.mark.parametrize(
    ("given", "fault", "hint"),
    [
        ("", "incomplete licence expression", None),
        ("MIT OR", "incomplete licence expression", None),
        ("(MIT", "incomplete licence expression", None),
        ("MIT WITH", "incomplete licence expression", None),
        ("()", "unexpected ')'", None),
        ("MIT)", "unexpected ')'", None),
        ("MIT BSD-3-Clause", "unexpected 'BSD-3-Clause'", None),
        ("MIT, 0BSD", "unexpected ', 0BSD'", None),
        ("(MIT OR 0BSD) WITH LLVM-exception", "unexpected 'WITH'", None),
        ("MIT WITH LLVM-exception WITH LLVM-exception", "unexpected 'WITH'", None),
        ("MIT WITH (LLVM-exception)", "unexpected '('", None),
        (
            "LLVM-exception",
            "'LLVM-exception' is an exception",
            "write it after a licence: GPL-2.0-only WITH LLVM-exception",
        ),
        ("MIT WITH 0BSD", "'0BSD' is not an exception", "https://spdx.org/licenses lists the identifiers"),
        ("MIT WITH LLVM-exeption", "unknown exception 'LLVM-exeption'", "did you mean 'LLVM-exception'?"),
        ("Apache-2.1", "unknown licence 'Apache-2.1'", "did you mean 'Apache-2.0'?"),
        ("Proprietary", "unknown licence 'Proprietary'", "https://spdx.org/licenses lists the identifiers"),
        ("NOASSERTION", "unknown licence 'NOASSERTION'", "omit the key"),
        ("LicenseRef-", "unknown licence 'LicenseRef-'", "letters, digits, '.' and '-' follow LicenseRef-"),
    ],
)
def test_invalid_expressions(given: str, fault: str, hint: str | None) -> None:
    with pytest.raises(ValueError, match=r"\(") as caught:
        normal(given)
    assert caught.value.args == (fault, hint)


def test_identifiers_are_without_exceptions() -> None:
    assert identifiers("GPL-2.0-only WITH LLVM-exception OR (MIT AND GPL-2.0-only)") == ["GPL-2.0-only", "MIT"]


def test_lists() -> None:
    licences, exceptions = known()
    assert len(licences) > 600 and len(exceptions) > 70
    assert licences["mit"] == "MIT" and exceptions["llvm-exception"] == "LLVM-exception"
    assert not licences.keys() & exceptions.keys()

# SPDX-License-Identifier: Apache-2.0
"""Licences, places of source files, and the most elements of a model."""

from dataclasses import replace

import pytest
from golden_support import copy_project
from opwest.base.diagnostics import Diagnostics
from opwest.model.inputs.headers import places
from opwest.model.readers.licences import identifiers, known, normal
from opwest.model.readers.resolve import check_counts
from opwest.model.types.model import Model
from projects import check

# --- Licence expressions: the grammar of SPDX 2.3, annex D, the spelling of the list, faults with hints

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
def test_valid_expressions(given, expected):
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
def test_invalid_expressions(given, fault, hint):
    with pytest.raises(ValueError, match=r"\(") as caught:
        normal(given)
    assert caught.value.args == (fault, hint)


def test_identifiers_are_without_exceptions():
    assert identifiers("GPL-2.0-only WITH LLVM-exception OR (MIT AND GPL-2.0-only)") == ["GPL-2.0-only", "MIT"]


def test_lists():
    licences, exceptions = known()
    assert len(licences) > 600 and len(exceptions) > 70
    assert licences["mit"] == "MIT" and exceptions["llvm-exception"] == "LLVM-exception"
    assert not licences.keys() & exceptions.keys()


# --- Places of the files of `application.sources`


def placed(**texts):
    """Return the places of files; `__` stands for `/`, `_` before the suffix for `.`."""
    return places({name.replace("__", "/").replace("_", "."): text.encode() for name, text in texts.items()})


def test_files_without_directories_go_to_src():
    assert placed(main_c="", app__inputs_cc="", app__inputs_h="", start_S="") == {
        "main.c": ["src/main.c"],
        "app/inputs.cc": ["src/inputs.cc"],
        "app/inputs.h": ["src/inputs.h"],
        "start.S": ["src/start.S"],
    }


def test_headers_keep_the_directory_of_their_include():
    found = placed(
        main_c='#include "data/inputs.h"\n', data__inputs_h='#include "more/sizes.h"\n', data__more__sizes_h=""
    )
    assert found["data/inputs.h"] == ["src/data/inputs.h"]
    assert found["data/more/sizes.h"] == ["src/data/more/sizes.h"]


def test_headers_beside_src():
    found = placed(src__main_c='#include "../include/inputs.h"\n', include__inputs_h="")
    assert found == {"src/main.c": ["src/main.c"], "include/inputs.h": ["include/inputs.h"]}


def test_a_header_of_two_places():
    found = placed(main_c='#include "data/inputs.h"\n', data__inputs_cc='#include "inputs.h"\n', data__inputs_h="")
    assert found["data/inputs.h"] == ["src/inputs.h", "src/data/inputs.h"]


def test_a_plain_include_of_another_directory():
    found = placed(app__main_c='#include "inputs.h"\n#include "deep/b.h"\n', app__deep__b_h="", include__inputs_h="")
    assert found["include/inputs.h"] == ["src/inputs.h"]
    assert found["app/deep/b.h"] == ["src/deep/b.h"]


def test_directories_with_other_content_are_not_used():
    texts = {"main.c": b'#include "../models/a.h"\n#include "../../b.h"\n', "b.h": b"", "../models/a.h": b""}
    assert places(texts)["../models/a.h"] == ["src/a.h"]
    assert places({"a/b/main.c": b'#include "../../x.h"\n', "x.h": b""})["x.h"] == ["src/x.h"]


def test_includes_in_a_circle():
    found = placed(main_c='#include "a/x.h"\n', a__x_h='#include "../a/y.h"\n', a__y_h='#include "x.h"\n')
    assert found["a/x.h"] == ["src/a/x.h"] and found["a/y.h"] == ["src/a/y.h"]


# --- Models with more elements than the indices of the metadata can number


@pytest.fixture
def model(tmp_path):
    found: Model = check(copy_project("many_kinds", tmp_path / "source"), Diagnostics())[0][0]
    return found


def faults_of(model):
    faults = Diagnostics()
    check_counts(model, faults)
    return "\n".join(str(fault) for fault in faults)


def test_number_of_tensors_and_constants(model):
    others = len(model.inputs) + len(model.outputs)
    most = replace(model, buffers=model.buffers[:1] * (65534 - others), constants=model.constants[:1] * 65534)
    assert faults_of(most) == ""
    more = replace(most, buffers=model.buffers[:1] * (65535 - others), constants=model.constants[:1] * 65535)
    name = model.name
    assert f"error: model '{name}' has 65535 inputs, outputs and tensors in the workspace\n" in faults_of(more)
    assert f"error: model '{name}' has 65535 constants\n  expected: at most 65534" in faults_of(more)


def test_number_of_scalars(model):
    step = next(s for s in model.steps if any(b.role == "scalar" for b in s.bindings))
    scalar = next(b for b in step.bindings if b.role == "scalar")
    equal = replace(step, bindings=(scalar,) * 70000)
    assert faults_of(replace(model, steps=(equal,))) == ""
    other = replace(step, bindings=tuple(replace(scalar, value=number) for number in range(65535)))
    assert faults_of(replace(model, steps=(other,))).count("has 65535 different values of scalars") == 1

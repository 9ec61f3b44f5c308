# SPDX-License-Identifier: Apache-2.0
"""Places of the files of `application.sources`."""

from __future__ import annotations

from opwest.model.application_places import places


def placed(**texts: str) -> dict[str, list[str]]:
    """Return the places of files; `__` stands for `/`, `_` before the suffix for `.`."""
    return places({name.replace("__", "/").replace("_", "."): text.encode() for name, text in texts.items()})


def test_files_without_directories_go_to_src() -> None:
    assert placed(main_c="", app__inputs_cc="", app__inputs_h="", start_S="") == {
        "main.c": ["src/main.c"],
        "app/inputs.cc": ["src/inputs.cc"],
        "app/inputs.h": ["src/inputs.h"],
        "start.S": ["src/start.S"],
    }


def test_headers_keep_the_directory_of_their_include() -> None:
    found = placed(
        main_c='#include "data/inputs.h"\n', data__inputs_h='#include "more/sizes.h"\n', data__more__sizes_h=""
    )
    assert found["data/inputs.h"] == ["src/data/inputs.h"]
    assert found["data/more/sizes.h"] == ["src/data/more/sizes.h"]


def test_headers_beside_src() -> None:
    found = placed(src__main_c='#include "../include/inputs.h"\n', include__inputs_h="")
    assert found == {"src/main.c": ["src/main.c"], "include/inputs.h": ["include/inputs.h"]}


def test_a_header_of_two_places() -> None:
    found = placed(main_c='#include "data/inputs.h"\n', data__inputs_cc='#include "inputs.h"\n', data__inputs_h="")
    assert found["data/inputs.h"] == ["src/inputs.h", "src/data/inputs.h"]


def test_a_plain_include_of_another_directory() -> None:
    found = placed(app__main_c='#include "inputs.h"\n#include "deep/b.h"\n', app__deep__b_h="", include__inputs_h="")
    assert found["include/inputs.h"] == ["src/inputs.h"]
    assert found["app/deep/b.h"] == ["src/deep/b.h"]


def test_directories_with_other_content_are_not_used() -> None:
    texts = {"main.c": b'#include "../models/a.h"\n#include "../../b.h"\n', "b.h": b"", "../models/a.h": b""}
    assert places(texts)["../models/a.h"] == ["src/a.h"]
    assert places({"a/b/main.c": b'#include "../../x.h"\n', "x.h": b""})["x.h"] == ["src/x.h"]


def test_includes_in_a_circle() -> None:
    found = placed(main_c='#include "a/x.h"\n', a__x_h='#include "../a/y.h"\n', a__y_h='#include "x.h"\n')
    assert found["a/x.h"] == ["src/a/x.h"] and found["a/y.h"] == ["src/a/y.h"]

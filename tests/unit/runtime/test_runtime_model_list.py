# SPDX-License-Identifier: Apache-2.0
"""The list of models of a host program. tests/zephyr/test_images_on_zephyr.py tests the list of an image."""

from pathlib import Path

from c_support import SANITIZED, build, execute, golden_app
from requirements_support import need_compiler


def test_models_are_found_by_name(tmp_path):
    need_compiler("gcc", SANITIZED, link=True)
    app = golden_app("several", tmp_path)
    program = build(app, tmp_path / "build", Path(__file__).parent / "programs" / "list.c", "gcc", SANITIZED)
    assert execute(program).stdout == "1 1 1 1\n"

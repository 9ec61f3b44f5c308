# SPDX-License-Identifier: Apache-2.0
"""Operators in Fortran and Ada and of tcc on the host: pages of docs/compilers, debug information, refusals."""

import numpy as np
import pytest
from foreign_project import HOST_TOOLS, foreign_project, rows_of_drafts, rows_of_pages
from opwest.cli.main import main
from requirements_support import need, need_x86_64

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def project():
    need("cc", *(name for tool in HOST_TOOLS.values() for name in tool.needs))
    need_x86_64()
    return foreign_project(HOST_TOOLS, "host_tools")


def test_answers_of_the_pages(project, tmp_path, monkeypatch, opwest):
    monkeypatch.chdir(project.folder)
    assert sorted(rows_of_drafts(HOST_TOOLS, opwest)) == sorted(rows_of_pages(HOST_TOOLS))
    assert main(["generate", str(project.write("manifest.yaml")), "-o", str(tmp_path / "app")]) == 0
    np.save(tmp_path / "x.npy", project.arrays["x"])
    words = ["run", str(tmp_path / "app"), "--host", "--output-dir", str(tmp_path)]
    assert main([*words, "--stream", f"x={tmp_path / 'x.npy'}"]) == 0
    for name in project.outputs:
        np.testing.assert_array_equal(np.load(tmp_path / f"{name}.npy"), project.arrays[name])

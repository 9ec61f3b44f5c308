# SPDX-License-Identifier: Apache-2.0
"""Operators and applications in C++ on the host."""

import json

import pytest
from cpp_project import write_models
from requirements_support import need

NEEDS_CXX = pytest.mark.needs("cc", "g++")


@pytest.fixture(scope="module")
def manifests(tmp_path_factory):
    return write_models(tmp_path_factory.mktemp("cpp"))


@pytest.fixture
def app(opwest, manifests, tmp_path):
    done = opwest("generate", *manifests, "-o", tmp_path / "app")
    assert done.code == 0, done.err
    return tmp_path / "app"


def test_check_lists_the_sources(opwest, manifests):
    done = opwest("check", *manifests)
    assert done.code == 0 and not done.err, done.err
    assert done.out.count("C++ source") == 4


@NEEDS_CXX
def test_application_in_cpp(opwest, app):
    done = opwest("run", app, "--host", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["result"]["stdout"] == "times_two: -2 4 -6 8\ntimes_five: -5 10 -15 20\n"
    lines = (app / "CMakeLists.txt").read_text()
    assert "src/main.cpp" in lines and "src/labels.cc" in lines and "src/main.c\n" not in lines
    assert "CONFIG_CPP=y" in (app / "prj.conf").read_text()


def test_names_get_the_prefix_of_the_model(app):
    header = (app / "models/times_two/objects/any/rename.h").read_text()
    common, cpp = header.split("#ifdef __cplusplus")
    for name in ("copy", "negate", "scale"):
        assert f"#define {name} times_two__{name}\n" in common
    for name in ("Tile", "kernels", "shared_name"):
        assert f"#define {name} times_two__{name}\n" in cpp
    assert "select CPP\n" in (app / "models/times_two/Kconfig").read_text()
    assert "REQUIRES_FULL_LIBCPP" not in (app / "models/times_two/Kconfig").read_text()


def test_full_library_is_selected(opwest, manifests, tmp_path):
    folder = manifests[1].parent
    text = (folder / "ops.h").read_text()
    (folder / "ops.h").write_text(text.replace("#include <stdint.h>", "#include <algorithm>"))
    try:
        assert opwest("generate", manifests[1], "-o", tmp_path / "app").code == 0
    finally:
        (folder / "ops.h").write_text(text)
    assert "select REQUIRES_FULL_LIBCPP\n" in (tmp_path / "app/models/times_five/Kconfig").read_text()


@NEEDS_CXX
@pytest.mark.slow
def test_standard_of_the_configuration(opwest, app):
    source = app / "models/times_two/objects/any/ops.cpp"
    labels = app / "src/labels.cc"
    labels.write_text(labels.read_text() + 'static_assert(__cplusplus == 201703L, "C++17");\n')
    done = opwest("run", app, "--host")
    assert done.code == 1 and "C++17" in done.err
    (app / "prj.conf").write_text((app / "prj.conf").read_text() + "CONFIG_STD_CPP17=y\n")
    done = opwest("run", app, "--host")
    assert done.code == 0, done.err
    assert source.is_file()


def test_missing_compiler(opwest, app, monkeypatch):
    need("cc")
    monkeypatch.setenv("CXX", "no-such-compiler")
    done = opwest("run", app, "--host")
    assert done.code == 1
    assert "error: C++ compiler 'no-such-compiler' not found" in done.err
    assert "hint: install g++ or clang++, or set CXX" in done.err


def test_inspect_shows_linkage(opwest, manifests):
    done = opwest("inspect", manifests[0].parent / "ops.cpp")
    assert "C++ source, compiled with the firmware" in done.out
    lines = {line.split()[1 if "defines" in line else 0]: line for line in done.out.splitlines() if " argument" in line}
    assert "C++ linkage" in lines["shared_name"] and "C++ linkage" not in lines["scale"]
    (report,) = json.loads(opwest("inspect", "--json", manifests[0].parent / "ops.cpp").out)["result"]
    assert report["kind"] == "c++"
    assert {f["name"]: f["mangled"] for f in report["functions"]} == {"scale": False, "shared_name": True}


def test_draft_of_a_cpp_source(opwest, manifests, tmp_path):
    for name in ("ops.cpp", "ops.h"):
        (tmp_path / name).write_bytes((manifests[0].parent / name).read_bytes())
    done = opwest("init", tmp_path / "ops.cpp", "-o", tmp_path / "manifest.yaml")
    assert done.code == 0, done.err
    text = (tmp_path / "manifest.yaml").read_text()
    assert "  scale:" in text and "ops.cpp" in text and "shared_name" not in text

# SPDX-License-Identifier: Apache-2.0
"""The store of compiled templates: in the process, and in __pycache__ where Python may write it."""

import sys
from pathlib import Path

import jinja2
import pytest
from opwest.project import templates


@pytest.fixture(autouse=True)
def new_process(monkeypatch, tmp_path):
    """Forget the templates of this process, and let Python write below tmp_path."""
    forget(monkeypatch)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))


def forget(monkeypatch):
    monkeypatch.setattr(templates, "_COMPILED", {})


def render(monkeypatch, text="{{ a }}"):
    """Return a rendered template, and how many templates were compiled."""
    count = 0
    original = jinja2.Environment.compile

    def compile_(*arguments, **options):
        nonlocal count
        count += 1
        return original(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(jinja2.Environment, "compile", compile_)
        cache = templates.CompiledTemplates(Path("templates"))
        environment = jinja2.Environment(loader=jinja2.DictLoader({"x": text}), bytecode_cache=cache)
        return environment.get_template("x").render(a=3), count


def test_process_compiles_a_template_once(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert [render(monkeypatch) for _ in range(2)] == [("3", 1), ("3", 0)]
    assert not list(tmp_path.rglob("*.pyc"))
    assert render(monkeypatch, "{{ a }}!") == ("3!", 1)


def test_next_process_reads_the_file(monkeypatch, tmp_path):
    assert render(monkeypatch) == ("3", 1)
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1
    forget(monkeypatch)
    assert render(monkeypatch) == ("3", 0)


@pytest.mark.parametrize("content", [b"", b"j2", b"\0" * 100])
def test_damaged_file_is_ignored(monkeypatch, tmp_path, content):
    render(monkeypatch)
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    whole = file.read_bytes()
    file.write_bytes(content or whole[:-10])
    forget(monkeypatch)
    assert render(monkeypatch) == ("3", 1)
    assert file.read_bytes() == whole


def test_directory_that_cannot_be_written(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "file"))
    assert render(monkeypatch) == ("3", 1)

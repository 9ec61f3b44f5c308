# SPDX-License-Identifier: Apache-2.0
"""User templates: replaced and added files, updates, and messages for their faults."""

import json
import shutil

import projects
import pytest
from opwest.base.diagnostics import Diagnostics, OpwestError
from opwest.base.resources import resource
from update_support import change, source_and_app, update
from write_support import refusal, tree


@pytest.fixture
def folder(tmp_path):
    """A directory of templates: tests write {path: text} to it."""

    def make(files):
        for name, text in files.items():
            path = tmp_path / "template" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return tmp_path / "template"

    return make


def faults_of(tmp_path, template):
    """Generate with a faulty template; return the messages, with paths inside the template."""
    faults = Diagnostics()
    try:
        source_and_app(tmp_path, template=template)
    except OpwestError as error:
        return str(error).replace(f"{template}/", "")
    raise AssertionError(f"not rejected: {[*faults]}")


def test_template_replaces_one_file(tmp_path, folder):
    template = folder({"src/main.c.jinja": "/* {{ models[0].name }} */\n"})
    _, plain = source_and_app(tmp_path / "plain")
    _, app = source_and_app(tmp_path, template=template)
    ours, theirs = tree(plain, own=False), tree(app, own=False)
    assert theirs.pop("src/main.c") == b"/* minimal */\n"
    ours.pop("src/main.c")
    assert ours == theirs


def test_template_is_recorded_and_used_by_updates(tmp_path, folder):
    template = folder({"src/main.c.jinja": "int a;\n\n\nint b;\n", "models/model/Kconfig.jinja": "# mine\n"})
    _, app = source_and_app(tmp_path, template=template)
    assert json.loads((app / ".opwest/origin.json").read_text())["template"] == "../template"
    record = json.loads((app / ".opwest/lock.json").read_text())["record"]
    assert sorted(record["template"]) == ["models/model/Kconfig.jinja", "src/main.c.jinja"]
    assert update(app)[0].state == "unchanged"
    change(app / "src/main.c", "int a;", "int mine;")
    folder({"src/main.c.jinja": "int a;\n\n\nint b, c;\n", "models/model/Kconfig.jinja": "# mine, newer\n"})
    outcome, told = update(app)
    assert (outcome.result.merged, told) == (("src/main.c",), "")
    assert (app / "src/main.c").read_text() == "int mine;\n\nint b, c;\n"  # Zephyr's format
    assert (app / "models/minimal/Kconfig").read_text() == "# mine, newer\n"


@pytest.mark.slow
def test_copy_of_all_templates(tmp_path):
    shutil.copytree(resource("project_template"), tmp_path / "template")
    _, plain = source_and_app(tmp_path / "plain", "many_kinds")
    _, app = source_and_app(tmp_path, "many_kinds", template=tmp_path / "template")
    assert tree(plain, own=False) == tree(app, own=False)
    assert update(app)[1] == ""


@pytest.mark.parametrize("name", ["host/main.c.jinja", "bundle/image.ld.jinja"])
def test_templates_of_commands_have_no_effect(tmp_path, folder, name):
    _, app = source_and_app(tmp_path)
    told = update(app, template=folder({name: "/* mine */\n"}))[1]
    assert told == (
        f"{tmp_path}/template/{name}: warning: template {name!r} has no effect: it is not a file of projects\n"
        "  hint: remove it"
    )


def test_another_template_and_none(tmp_path, folder):
    _, app = source_and_app(tmp_path)
    ours = (app / "prj.conf").read_text()
    template = folder({"prj.conf.jinja": "CONFIG_MINE=y\n"})
    update(app, template=template)
    assert (app / "prj.conf").read_text() == "CONFIG_MINE=y\n"
    update(app, own_template=True)
    assert (app / "prj.conf").read_text() == ours
    assert update(app)[0].state == "unchanged"


def test_missing_template(tmp_path, folder):
    template = folder({"prj.conf.jinja": "CONFIG_MINE=y\n"})
    _, app = source_and_app(tmp_path, template=template)
    template.rename(tmp_path / "moved")
    assert refusal(update, app) == (
        f"{app}/.opwest/origin.json: error: template not found: {template}\n"
        "  hint: specify it with --template DIR, or use --no-template"
    )
    assert update(app, template=tmp_path / "moved")[0].state == "unchanged"
    assert update(app)[0].state == "unchanged"


def test_generating_again_without_the_template_is_reported(tmp_path, folder):
    template = folder({"prj.conf.jinja": "CONFIG_MINE=y\n"})
    manifest, app = source_and_app(tmp_path, template=template)
    faults = Diagnostics()
    projects.generate([manifest], app, vendored=False, faults=faults)
    text = "\n".join(map(str, faults))
    assert (
        f"{app}: warning: the project was generated with the template {template}, and is now generated without it\n"
        in text
    )
    assert f"{app}: note: kept, although newly generated content differs: prj.conf\n" in text


def test_templates_may_include_each_other_and_ours(tmp_path, folder):
    template = folder(
        {
            "prj.conf.jinja": '{% include "opwest/prj.conf.jinja" %}\n{% include "parts/_more.jinja" %}',
            "parts/_more.jinja": "CONFIG_MORE=y # {{ models[0].kconfig }}\n",
        }
    )
    _, plain = source_and_app(tmp_path / "plain")
    _, app = source_and_app(tmp_path, template=template)
    expected = (plain / "prj.conf").read_text() + "\nCONFIG_MORE=y # OPWEST_MODEL_MINIMAL\n"
    assert (app / "prj.conf").read_text().replace("\n\n", "\n") == expected.replace("\n\n", "\n")


# --- files beside those of project_template


def test_extra_files_are_the_users(tmp_path, folder):
    template = folder(
        {
            "extra/docs/notes.md.jinja": "{{ application }}: {{ models[0].name }} {{ models[0].macro }}\n",
            "extra/logo.bin": b"\0\xff",
            "extra/.editorconfig": "root = true\n",
            "extra/_partial/__init__.py": "",
        }
    )
    _, app = source_and_app(tmp_path, template=template)
    assert (app / "docs/notes.md").read_text() == "minimal: minimal MINIMAL\n"
    assert (app / "logo.bin").read_bytes() == b"\0\xff"
    assert (app / ".editorconfig").exists() and (app / "_partial/__init__.py").exists()
    (app / "docs/notes.md").write_text("minimal: minimal MINIMAL\nmine\n")
    folder({"extra/docs/notes.md.jinja": "New.\n\n{{ application }}: minimal MINIMAL\n"})
    assert update(app)[0].result.merged == ("docs/notes.md",)
    assert (app / "docs/notes.md").read_text() == "New.\n\nminimal: minimal MINIMAL\nmine\n"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (
            "extra/prj.conf",
            "extra/prj.conf: error: path 'prj.conf' conflicts with file 'prj.conf'\n"
            "  expected: a unique path\n"
            "  hint: to replace that file, name the template prj.conf.jinja",
        ),
        (
            "extra/PRJ.conf",
            "extra/PRJ.conf: error: path 'PRJ.conf' conflicts with file 'prj.conf'\n  expected: a unique path",
        ),
        ("extra/src", "extra/src: error: path 'src' conflicts with directory 'src'"),
        ("extra/Src/a.c", "extra/Src/a.c: error: path 'Src/a.c' conflicts with directory 'src'"),
        ("extra/prj.conf/a", "extra/prj.conf/a: error: path 'prj.conf/a' conflicts with file 'prj.conf'"),
        ("extra/models/mine/a.c", "error: 'models/' is owned by opwest: templates cannot add files to it"),
        ("extra/.opwest/lock.json", "error: '.opwest/' is owned by opwest: templates cannot add files to it"),
    ],
)
def test_extra_files_in_the_way(tmp_path, folder, name, told):
    assert told in faults_of(tmp_path, folder({name: "x\n"}))


# --- faults


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"prj.conf.jinja": "a\nb {% if %}\n"}, "prj.conf.jinja:2:1: error: invalid template: Expected an expr"),
        ({"prj.conf.jinja": "a\n{% for m in models %}\n\n"}, "prj.conf.jinja:2:1: error: invalid template: "),
        ({"tests/model/prj.conf.jinja": "\n{{ }}"}, "tests/model/prj.conf.jinja:2:1: error: invalid template"),
        (
            {"prj.conf.jinja": "a\n\n{{ modles[0] }}\n"},
            "prj.conf.jinja:3:1: error: 'modles' is undefined\n  hint: did you mean 'models'?",
        ),
        (
            {"prj.conf.jinja": "{% for m in models %}\n{{ m.nmae }}{% endfor %}"},
            "prj.conf.jinja:2:1: error: 'dict object' ",
        ),
        ({"prj.conf.jinja": "\n{{ lipsum(2) }}"}, "prj.conf.jinja:2:1: error: 'lipsum' is undefined"),
        ({"prj.conf.jinja": "\n{{ 1 / 0 }}"}, "prj.conf.jinja:2:1: error: ZeroDivisionError: division by zero"),
        ({"prj.conf.jinja": "\n{{ models | nosuch }}"}, "prj.conf.jinja:2:1: error: invalid template: No filter"),
        (
            {"prj.conf.jinja": '\n{% include "parts/_mor.jinja" %}', "parts/_more.jinja": ""},
            "prj.conf.jinja:2:1: error: unknown template 'parts/_mor.jinja' in include\n"
            "  hint: did you mean 'parts/_more.jinja'?",
        ),
        (
            {"prj.conf.jinja": '\n{% include "_a.jinja" %}', "_a.jinja": "\n\n\n{{ oops }}"},
            "_a.jinja:4:1: error: 'oops' is undefined",
        ),
        (
            {"prj.conf.jinja": '\n{% extends "prj.conf.jinja" %}'},
            "prj.conf.jinja:2:1: error: the template includes itself, or is nested too deeply",
        ),
        ({"prj.conf.jinja": "{{ '\\ud800' }}"}, "prj.conf.jinja: error: UnicodeEncodeError: "),
        ({"prj.conf.jinja": b"a\n\xff"}, "prj.conf.jinja:2:1: error: invalid UTF-8 byte 0xff"),
        (
            {"src/man.c.jinja": ""},
            "src/man.c.jinja: error: unknown template 'src/man.c.jinja'\n"
            "  expected: the path of a file of project_template, extra/… for an additional file, or a name "
            "with a leading _ for an included template\n  hint: did you mean 'src/main.c.jinja'?",
        ),
        (
            {"src/main.c": ""},
            "src/main.c: error: template src/main.c has no effect without the suffix .jinja\n"
            "  hint: rename it to src/main.c.jinja",
        ),
        ({"extra/a.jinja": "\n\n{{ b }}"}, "extra/a.jinja:3:1: error: 'b' is undefined"),
    ],
)
def test_faults_name_file_and_line(tmp_path, folder, files, told):
    assert told in faults_of(tmp_path, folder(files))
    assert not (tmp_path / "app").exists()


def test_all_faults_are_reported_together(tmp_path, folder):
    template = folder({"prj.conf.jinja": "{{ a }}", "src/main.c.jinja": "{{ b }}", "extra/c.jinja": "{{ c }}"})
    text = faults_of(tmp_path, template)
    assert [line.split(":")[0] for line in text.splitlines() if "error" in line] == [
        "extra/c.jinja",
        "prj.conf.jinja",
        "src/main.c.jinja",
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{{ ''.__class__.__mro__ }}", "error: not permitted in templates: access to attribute '__class__' of 'str'"),
        ("{{ models.append(1) }}", "error: not permitted in templates: "),
        ("{{ (''|attr('format')).__self__ }}", "error: "),
        ("{{ self.__init__.__globals__ }}", "error: "),
        ("{{ cycler.__init__.__globals__.os.popen('true') }}", "error: "),
    ],
)
def test_templates_are_in_a_sandbox(tmp_path, folder, text, told):
    """tests/unit/render/test_render_sandbox.py has templates without bounds."""
    found = faults_of(tmp_path, folder({"prj.conf.jinja": f"\n{text}\n"}))
    assert found.startswith(("prj.conf.jinja:2:1: ", "prj.conf.jinja: error: not permitted")) and told in found


def test_files_that_are_not_templates(tmp_path, folder):
    template = folder(
        {
            "README.md": "",
            "LICENSE": "",
            ".git/config": "",
            ".gitignore": "",
            "notes.txt": "",
            "prj.conf.jinja": "A=y\n",
        }
    )
    faults = Diagnostics()
    source_and_app(tmp_path / "plain")
    (manifest, _) = source_and_app(tmp_path)
    projects.generate([manifest], tmp_path / "other", vendored=False, faults=faults, template=template)
    assert [str(d) for d in faults] == [
        f"{template}/notes.txt: warning: ignored: the file is not a template\n"
        "  hint: put additional files of projects into extra/"
    ]


@pytest.mark.parametrize(("kind", "told"), [("absent", "the directory does not exist"), ("file", "not a directory")])
def test_no_folder(tmp_path, kind, told):
    place = tmp_path / "template"
    if kind == "file":
        place.write_text("")
    with pytest.raises(OpwestError) as error:
        source_and_app(tmp_path, template=place)
    assert str(error.value) == (
        f"{place}: error: {told}\n  expected: a directory with templates, such as src/main.c.jinja"
    )

# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 - lists of words
"""User templates: whatever their content, they can access only prepared rows."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fuzz_manifests import words
from fuzz_mutators import text_mutator
from fuzz_readers import Read, Reader
from opwest.base.diagnostics import Diagnostics
from opwest.base.resources import resource
from opwest.project.templates import read_own_templates
from opwest.render.templates.files import UserTemplates
from opwest.render.templates.user import UserRenderer

_SEEDS = (
    "{% for m in models %}{{ m.name|upper }} {{ loop.index }}{% else %}none{% endfor %}\n",
    "{% macro f(a, b=2) %}{{ a ~ b }}{{ caller() if caller else '' }}{% endmacro %}{{ f(1) }}{% call f(2) %}x{% endcall %}",
    "{% set ns = namespace(x=1) %}{% if ns.x is defined and not none %}{{ '%5d|%s' % (ns.x, 'a') }}{% endif %}\n",
    "{% include '_part.jinja' ignore missing %}{% import '_part.jinja' as p %}{{ p.x }}{% extends 'opwest/src/main.c.jinja' %}",
    "{% block b scoped %}{{ super() }}{{ self.b() }}{% endblock %}{% filter indent(4) %}x{% endfilter %}{% raw %}{{ {% endraw %}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}{{ models[0]|attr('__init__') }}{{ '{0.__class__}'.format(1) }}",
    "{{ cycler.__init__.__globals__.os.system('id') }}{{ lipsum.__globals__ }}{{ self._TemplateReference__context }}",
    "{% with a = [1, 2]|batch(2)|list %}{{ a|map('join', '-')|sort|first }}{{ dict(a=1)|tojson }}{{ a|sum(start=[]) }}{% endwith %}",
)
_WORDS = (
    "{{ }} {% %} {# #} for in if else elif endif endfor set macro endmacro call endcall include import from extends block "
    "endblock filter raw endraw with namespace loop loop() recursive self super() caller() range(9) range(99999) cycler "
    "joiner dict lipsum models models[0] __class__ __globals__ __init__ __builtins__ __import__ gi_frame f_globals func_code "
    "|attr |map |select |reject |list |join |sort |groupby('x') |tojson |format |replace |center(99) |indent(9) |batch(3) |slice(3) "
    "|sum |int |string |safe |e |xmlattr |pprint |random |items |wordwrap(9) |truncate |urlize ~ + - * ** // % == is not none "
    "'x' '%9999999d' '{:>99999999}' '{0.__class__}' 1 0 -1 10**9 2**999 99999999999 [] {} () . .format(1) [0] [::-1]"
).split()


_FORBIDDEN = ("os.", "subprocess.", "socket.", "ctypes.", "shutil.", "pty.")
_IMPORT = "<frozen importlib._bootstrap_external>"
"""The first import in a filter lists the directories of modules that changed since the import before it."""


class _Watch:
    """An audit hook that records forbidden actions of templates."""

    def __init__(self, allowed: Sequence[Path]) -> None:
        self.allowed = (*(str(path) for path in allowed), "templates/")  # tracebacks read its text
        self.active = False
        self.seen: list[str] = []
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.active:
            return
        if event == "open":
            path, flags = str(arguments[0]), arguments[2] if isinstance(arguments[2], int) else 0
            writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            if writes or not path.startswith((*self.allowed, sys.prefix, sys.base_prefix)):
                self.seen.append(f"open {path}")
        elif event.startswith(_FORBIDDEN) and sys._getframe(1).f_code.co_filename != _IMPORT:
            self.seen.append(event)


class Row:
    """A value of a row: templates may not access its private attributes."""

    def __init__(self) -> None:
        self.name = "digits"
        self._secret = "reached a private attribute"


def _start(_folder: Path) -> Read:
    own = resource("project_template")
    templates = read_own_templates().own
    watch = _Watch([own])
    rows = {"models": [Row(), Row()], "name": "digits", "count": 3, "pairs": [("a", 1), ("b", 2)]}
    part = "{% set x = 'part' %}{{ x }}"

    def read(content: bytes) -> str:
        faults = Diagnostics()
        text = content.decode("utf-8", "replace")
        user = UserTemplates("templates", {"src/main.c.jinja": text, "_part.jinja": part})
        renderer = UserRenderer(user, templates, faults)
        renderer.check()
        watch.seen.clear()
        watch.active = True
        try:
            made = renderer.render("src/main.c.jinja", rows)
        finally:
            watch.active = False
        assert not watch.seen, watch.seen
        assert Row()._secret.encode() not in made
        return words(faults)

    return read


READERS = (Reader("template", lambda: _SEEDS, _start, text_mutator(_WORDS, pattern=r"\w+|\{\{|\}\}|\{%|%\}|\S")),)

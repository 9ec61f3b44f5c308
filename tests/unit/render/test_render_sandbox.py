# SPDX-License-Identifier: Apache-2.0
"""Templates without bounds on time or memory end soon with an ordinary message."""

import resource as limits

import pytest
from opwest.base.diagnostics import Diagnostics
from opwest.project.templates import read_own_templates
from opwest.render.templates import user
from opwest.render.templates.files import UserTemplates
from opwest.render.templates.user import UserRenderer

NAME = "src/main.c.jinja"
MUCH = "a result of more than 1048576 elements"
NESTED = "the template includes itself, or is nested too deeply"
PASSES = "more than 20000 passes of loops and calls of macros"
WIDTH = "a field of more than 9999 characters, or of a width that is an argument"


def render(text, monkeypatch=None):
    faults = Diagnostics()
    renderer = UserRenderer(UserTemplates("t", {NAME: text}), read_own_templates().own, faults)
    renderer.check()
    made = renderer.render(NAME, {"models": ["m1", "m2"]})
    return made.decode(), [one.message for one in faults]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """A low limit on loop passes, and a limit on memory."""
    monkeypatch.setattr(user, "MAX_PASSES", 20_000)
    before = limits.getrlimit(limits.RLIMIT_AS)
    limits.setrlimit(limits.RLIMIT_AS, (8 << 30, before[1]))
    yield
    limits.setrlimit(limits.RLIMIT_AS, before)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}", PASSES),
        ("{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}", PASSES),
        ("{% for x in [1] recursive %}{{ loop([1]) }}{{ loop([1]) }}{% endfor %}", NESTED),
        ("{{ self.b() }}{% block b %}{{ self.b() }}{{ self.b() }}{% endblock %}", NESTED),
        ("{% set n = namespace(x='aa') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}", MUCH),
        ("{% set n = namespace(x='aa') %}{% for i in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}", MUCH),
        ("{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x }}", MUCH),
        (
            "{% set n = namespace(x=9) %}{% for i in range(60) %}{% set n.x = n.x * n.x %}{% endfor %}",
            "a number of more than 16384 bits",
        ),
        ("{{ 2**1000**1000 }}", "a number of more than 16384 bits"),
        ("{{ 'a'.ljust(10**10) }}", MUCH),
        ("{{ 'a'|center(9999999999) }}", MUCH),
        ("{{ 'x'|indent(99999999999) }}", MUCH),
        ("{{ '{:>{}}'.format(1, 9999999999) }}", "a width that is a field itself"),
        ("{{ '{:>9999999999}'.format(1) }}", WIDTH),
        ("{{ '%*d' % (999999999, 1) }}", WIDTH),
        ("{{ '%999999999d'|format(1) }}", WIDTH),
        ("{{ ('a' * 1000000)|replace('a', 'b' * 1000000) }}", MUCH),
        ("{{ ('a' * 1000000).replace('a', 'b' * 1000000) }}", MUCH),
        ("{{ ('a' * 1000000).join([''] * 1000000) }}", MUCH),
        ("{{ range(99999)|map('string')|join('a' * 1000000) }}", MUCH),
        ("{{ [1]|batch(9999999999, 'x')|list }}", MUCH),
        ("{{ [1]|slice(999999999)|list }}", MUCH),
        ("{{ [[1] * 1000000] * 1000000 }}", MUCH),
        ("{{ '%s' % [['a' * 1000000] * 1000] }}", MUCH),
        ("{{ (['a' * 1000000] * 1000)|pprint }}", MUCH),
        ("{{ (['a' * 1000000] * 100000)|string }}", MUCH),
    ],
)
def test_templates_without_bounds_are_rejected(text, message):
    made, faults = render(text)
    assert made == ""
    assert faults == [message if message == NESTED else f"not permitted in templates: {message}"]


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("{{ 'a' ~ 1 ~ models }}", "a1['m1', 'm2']"),
        ("{% for m in models %}{{ loop.index }}{{ m|upper }},{% endfor %}", "1M1,2M2,"),
        ("{% macro f(a, b=2) %}{{ a + b }}{{ caller() }}{% endmacro %}{% call f(1) %}x{% endcall %}", "3x"),
        ("{% block b %}{{ '%05d|%s' % (7, 'x') }}{% endblock %}", "00007|x"),
        ("{{ '{:>4}'.format(1) }}{{ 'a,b'.replace(',', ';') }}{{ '-'.join(models) }}", "   1a;bm1-m2"),
        ("{{ models|join(', ') }}{{ 'x'|center(3) }}{{ 'ab'|replace('a', 'b') }}{{ models|batch(1)|list }}",
         "m1, m2 x bb[['m1'], ['m2']]"),
        ("{{ 2 ** 31 - 1 }} {{ 7 * 6 }} {{ [1] + [2] }} {{ 'ab' * 2 }} {{ models|tojson }}",
         '2147483647 42 [1, 2] abab ["m1", "m2"]'),
    ],
)  # fmt: skip
def test_permitted_templates(text, made):
    assert render(text) == (made, [])


def test_passes_are_counted_for_each_file():
    faults = Diagnostics()
    text = "{% for a in range(15000) %}{% endfor %}done"
    renderer = UserRenderer(UserTemplates("t", {NAME: text}), read_own_templates().own, faults)
    assert [renderer.render(NAME, {}) for _ in range(3)] == [b"done"] * 3 and not len(faults)

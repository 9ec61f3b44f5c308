# SPDX-License-Identifier: Apache-2.0
"""Kconfig files: conditions, definitions, choices and their values."""

from pathlib import Path

import pytest
from opwest.zephyr.kconfig import NEVER, KconfigFiles, expression
from opwest.zephyr.kconfig_values import KconfigValues, holds


def true(text: str, *forced: str, **assigned: bool) -> set[str]:
    files = KconfigFiles({"BOARD_REVISION": "b"})
    files.add(text)
    return set(KconfigValues(files).true(forced, assigned))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("A", True),
        ("N", False),
        ("A && N || A", True),
        ("A && (N || !N)", True),
        ("!(A || N)", False),
        ("!A || N", False),
        ('A = "y"', True),
        ("N != y", True),
        ('"x" = "x" && A', True),
        ('"x" != "y"', True),
        ("1 < 2", False),  # numbers have no order here
        ("$(dt_nodelabel_enabled,x)", False),
        ("A &&", False),
        ("A N", False),
        ("(A", False),
        ("A)", False),
        ("A ?", False),
    ],
)
def test_conditions(text: str, expected: bool) -> None:
    assert holds(expression(text), frozenset(["A"])) is expected


def test_invalid_conditions_are_never_true() -> None:
    assert expression("A ?") == NEVER and expression("(A") == NEVER and expression("A)") == NEVER


def test_selections_defaults_and_implications() -> None:
    text = """
config A
	bool
	select B if C
	select D
	imply E
	imply F if C
config B
	bool
config D
	bool "has a \\
prompt" # a comment
	default n
config E
	bool
	depends on !D
config G
	def_bool y
	depends on A
config H
	bool
	default n if A
	default y
	help
	  config I

	  select J
config K
	def_bool y if "$(BOARD_REVISION)" = "b"
"""
    assert true(text, "A") == {"A", "D", "G", "K"}
    assert true(text, "A", "C") == {"A", "B", "C", "D", "G", "K"}  # F has no definition
    assert true(text) == {"H", "K"}


def test_assigned_values_require_a_prompt() -> None:
    text = 'config A\n\tbool "a" if C\nconfig B\n\tbool\nconfig D\n\tbool\n\tprompt "d"\n\tdefault y\n'
    assert true(text, A=True, B=True, D=False) == set()
    assert true(text, "C", A=True, B=True) == {"A", "C", "D"}


def test_blocks() -> None:
    text = """
if A
menu "m"
	depends on B
config C
	def_bool y
endmenu
config D
	def_bool y
endif
comment "text"
config E
	def_bool y
endif
"""
    assert true(text, "A") == {"A", "D", "E"}
    assert true(text, "A", "B") == {"A", "B", "C", "D", "E"}
    assert true(text) == {"E"}


def test_choices() -> None:
    text = """
choice ABI
	default SOFT if OLD
endchoice
choice ABI
	prompt "ABI"
	depends on FPU
	default HARD
config SOFT
	bool "soft"
config HARD
	bool "hard"
config OTHER
	bool "other"
	depends on X
endchoice
"""
    assert true(text) == set()
    assert true(text, "FPU") == {"FPU", "HARD"}
    assert true(text, "FPU", "OLD") == {"FPU", "OLD", "SOFT"}
    assert true(text, "FPU", SOFT=True) == {"FPU", "SOFT"}
    assert true(text, "FPU", OTHER=True) == {"FPU", "HARD"}
    assert true('choice\n\tbool "c"\nconfig A\n\tbool "a"\nconfig B\n\tbool "b"\nendchoice\n') == {"A"}
    assert true('choice\nconfig A\n\tbool "a"\nendchoice\n') == set()  # no prompt


def test_contradictions_end() -> None:
    assert true("config A\n\tdef_bool !B\nconfig B\n\tdef_bool !A\n") <= {"A", "B"}


def test_included_files(tmp_path: Path) -> None:
    for name, text in {
        "Kconfig": 'source "Kconfig.a"\nrsource "sub/*/Kconfig"\norsource "absent/Kconfig"\nosource "$(UNKNOWN)/K"\n'
        'if A\nrsource "Kconfig.b"\nendif\nsource "secret"\nrsource "**x/Kconfig"\n',
        "Kconfig.a": 'config A\n\tdef_bool y\nsource "Kconfig"\n',
        "Kconfig.b": "config B\n\tdef_bool y\n",
        "sub/one/Kconfig": 'config C\n\tdef_bool y\nrsource "Kconfig.d"\n',
        "sub/one/Kconfig.d": "config D\n\tdef_bool y\n",
        "secret": "config E\n\tdef_bool y\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    files = KconfigFiles({"srctree": str(tmp_path)})
    files.read([tmp_path / "Kconfig", tmp_path / "absent"])
    assert KconfigValues(files).true([], {}) == {"A", "B", "C", "D"}

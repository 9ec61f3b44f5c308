# SPDX-License-Identifier: Apache-2.0
"""Diagnostics in pipes and at terminals, and the options --color, --quiet, --verbose."""

import json
import os
import pty
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from opwest.base.diagnostics import Diagnostic, Location
from opwest.cli.printing import Excerpts, Terminal, cells, shown, terminal_of, wrapped

sys.path.insert(0, str(Path(__file__).parents[1] / "invalid"))

from invalid_cases import find

PLAIN = Terminal()
DETAILED = Terminal(detailed=True, width=40)


def excerpt(line: bytes, column: int, width: int = 80) -> list[str]:
    found = Excerpts({"m.yaml": b"first\n" + line}).excerpt(
        Location("m.yaml", 2, column), "error", Terminal(detailed=True, width=width)
    )
    return [text[8:] for text in found]


@pytest.mark.parametrize(
    ("line", "column", "text", "caret"),
    [
        (b"run: {step: 1}", 7, "run: {step: 1}", "      ^~~~"),
        (b'a: "x \\" y" # z', 4, 'a: "x \\" y" # z', "   ^~~~~~~~"),
        (b"\ta:\tbad", 5, "        a:      bad", "                ^~~"),
        ("名前: 値x y".encode(), 5, "名前: 値x y", "      ^~~"),
        ("e\u0301: bad".encode(), 5, "e\u0301: bad", "   ^~~"),
        (b"a: \x1b[31mred\x00", 4, "a: <U+001B>[31mred<U+0000>", "   ^~~~~~~~"),
        ("a: x\u202ey".encode(), 4, "a: x<U+202E>y", "   ^~~~~~~~~~"),
        (b"a: \xff\xfe", 4, "a: <ff><fe>", "   ^~~~~~~~"),
        (b"a: ", 4, "a:", "   ^"),
        (b"a: b\r\n", 4, "a: b", "   ^"),
        (b"a: b\xc2\x85c", 4, "a: b", "   ^"),  # a line break of YAML 1.1
    ],
)
def test_the_caret_is_below_the_token(line: bytes, column: int, text: str, caret: str) -> None:
    assert excerpt(line, column) == [text, caret]


@pytest.mark.parametrize("column", [1, 2, 30, 57, 300, 601])
@pytest.mark.parametrize("word", ["word ", "値 ", "x" * 90 + " ", "\t"])
def test_long_lines_are_shortened_around_the_caret(column: int, word: str) -> None:
    line = (word * 700)[:600]
    text, caret = excerpt(line.encode(), column, 48)
    assert cells(text) <= 40 and cells(caret) <= 40 and "…" in text
    at = len(caret) - len(caret.lstrip())
    if line[column - 1 : column].strip():  # the character below which the caret is
        assert next(c for i, c in enumerate(text) if cells(text[:i]) >= at) == line[column - 1]


def test_a_line_that_does_not_exist_is_not_shown(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for place in (
        *(Location("m.yaml", line, column) for line, column in ((3, 1), (2, 9), (0, 0), (1, 0))),
        *(Location(str(tmp_path / name), 1, 1) for name in ("absent", "fifo", ".")),
    ):
        assert Excerpts({"m.yaml": b"one\ntwo"}).excerpt(place, "error", DETAILED) == []


def test_shared_remarks_are_printed_once() -> None:
    found = [Diagnostic("error", f"e{line}", Location("a", line, 1), "x", "y") for line in range(1, 13)]
    found += [Diagnostic("note", "n", None, None, "z"), Diagnostic("error", "o", Location("b"), None, "z")]
    texts = shown(found, {}, PLAIN)
    also = "(also for lines 2, 3, 4, 5, 6, 7, 8, 9 and 3 more)"
    assert texts[0] == f"a:1:1: error: e1\n  expected: x\n  hint: y\n  {also}"
    assert texts[1:12] == [f"a:{line}:1: error: e{line}" for line in range(2, 13)]
    assert texts[12:] == ["opwest: note: n\n  hint: z\n  (also for b)", "b: error: o"]


def test_places_of_shared_remarks_are_wrapped() -> None:
    found = [Diagnostic("error", "e", Location(f"directory/file_{n}.yaml"), None, "z") for n in range(3)]
    assert shown(found, {}, DETAILED)[0].split("\n")[2:] == [
        "  (also for directory/file_1.yaml,",
        "    directory/file_2.yaml)",
    ]


def test_text_is_wrapped_between_words() -> None:
    assert wrapped("one two three four", 10, 4, 2) == "one\n  two\n  three\n  four"
    assert wrapped("値値 値値 値値", 11, 0, 2) == "値値 値値\n  値値"
    assert wrapped("x" * 30 + " y", 10, 0, 1) == "x" * 30 + "\n y"
    quoted = "  cc: a line of another program that is long"
    found = [Diagnostic("error", f"a message of several words\n{quoted}", None, "12345678 " * 5)]
    assert shown(found, {}, DETAILED)[0].split("\n") == [
        "opwest: error: a message of several",
        "    words",
        quoted,
        "  expected: 12345678 12345678 12345678",
        "    12345678 12345678 ",
    ]


def test_control_characters_do_not_reach_the_terminal() -> None:
    hostile = "\x1b]0;title\x07\x9b2J\u202e"
    found = [Diagnostic("error", hostile, Location(f"{hostile}.yaml", 1, 1), hostile, hostile)]
    for terminal in (PLAIN, DETAILED):
        (text,) = shown(found, {f"{hostile}.yaml": f"a{hostile}".encode()}, terminal)
        assert text.replace("\n", "").isprintable(), text
        assert text.startswith("\\x1b]0;title\\x07\\x9b2J\\u202e.yaml:1:1: error: \\x1b]0;")


@pytest.mark.parametrize(
    ("live", "option", "environment", "coloured"),
    [
        (True, "auto", {}, True),
        (False, "auto", {}, False),
        (True, "auto", {"TERM": "dumb"}, False),
        (True, "auto", {"NO_COLOR": "1"}, False),
        (True, "auto", {"NO_COLOR": ""}, True),
        (False, "auto", {"CLICOLOR_FORCE": "1"}, True),
        (False, "auto", {"CLICOLOR_FORCE": "0"}, False),
        (True, "auto", {"NO_COLOR": "1", "CLICOLOR_FORCE": "1"}, False),
        (True, "always", {"NO_COLOR": "1"}, True),
        (False, "always", {}, True),
        (True, "never", {"CLICOLOR_FORCE": "1"}, False),
    ],
)
def test_colours_are_selected_by_option_environment_and_terminal(live, option, environment, coloured) -> None:
    primary, secondary = pty.openpty()
    reader, writer = os.pipe()
    with os.fdopen(secondary if live else writer, "w") as stream:
        terminal = terminal_of(stream, option, {"COLUMNS": "70", **environment})
    for other in (primary, reader, writer if live else secondary):
        os.close(other)
    assert terminal == Terminal(live or coloured, coloured, 70 if live else None)


def at_terminal(folder: Path, *arguments: str, **environment: str) -> str:
    """Run opwest with a terminal of 60 columns as its standard error and output; return the output."""
    primary, secondary = pty.openpty()
    env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "CLICOLOR_FORCE")}
    env |= {"COLUMNS": "60", "TERM": "xterm", **environment}
    output = bytearray()

    def read() -> None:
        try:
            while part := os.read(primary, 4096):
                output.extend(part)
        except OSError:
            pass  # the other end is closed

    reader = threading.Thread(target=read)
    reader.start()
    command = [sys.executable, "-m", "opwest", *arguments]
    subprocess.run(
        command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=secondary, stderr=secondary, check=False
    )
    os.close(secondary)
    reader.join()
    os.close(primary)
    return output.decode().replace("\r\n", "\n")


def test_a_terminal_shows_the_line_and_a_pipe_does_not(tmp_path: Path, opwest, monkeypatch) -> None:
    text = find("shape/unknown_keys_in_several_places").manifests()["manifest.yaml"].decode()
    (tmp_path / "m.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CLICOLOR_FORCE", raising=False)
    piped = opwest("check", "m.yaml").err
    assert "m.yaml:15:1: error: unknown key 'libs' in the manifest\n  hint: did you mean 'libc'?\n" in piped
    live = at_terminal(tmp_path, "check", "m.yaml", NO_COLOR="1")
    line = text.splitlines()[14]
    expected = (
        f"error: unknown key 'libs' in the manifest\n   15 | {line}\n      | ^~~~\n  hint: did you mean 'libc'?\n"
    )
    assert expected in live and "\x1b" not in live
    assert max(len(row) for row in live[live.index("m.yaml:") :].splitlines()) <= 60
    coloured = at_terminal(tmp_path, "check", "m.yaml")
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == live and "\x1b[1;31merror:\x1b[0m" in coloured
    assert opwest("check", "m.yaml", "--color", "always").err.count("\x1b[1;31m^") == 5
    assert json.loads(opwest("check", "m.yaml", "--json").out)["diagnostics"][-1]["hint"] == "did you mean 'libc'?"


def test_quiet_prints_errors_only(digits, tmp_path: Path, opwest, succeed, fail, monkeypatch) -> None:
    done = opwest("check", "-q", digits / "manifest.yaml")
    assert (done.code, done.out, done.err) == (0, "", "")
    (tmp_path / "m.yaml").write_text((digits / "manifest.yaml").read_text().replace("\nmodel:", "\nmodle:"))
    done = fail("check", "-q", tmp_path / "m.yaml")
    assert ": error: " in done.err and ": note: " not in done.err
    monkeypatch.chdir(digits)
    assert "version: 1" in succeed("init", "-q", "objects/x86-64/operators.o", "-o", "-").out


def test_verbose_prints_stages_commands_and_times(digits, digits_app, opwest) -> None:
    done = opwest("check", "-v", digits / "manifest.yaml")
    stages = re.findall(r"^(.*): \d+\.\d{3} s$", done.err, re.MULTILINE)
    assert stages == ["load manifests", "inspect objects", "check models", "plan memory", "check"]
    done = opwest("run", "-v", "--host", digits_app)
    assert re.search(r"^\+ \S*cc .*digits_run\.c .*\n  \S*cc: \d+\.\d{3} s$", done.err, re.MULTILINE), done.err
    assert opwest("check", digits / "manifest.yaml").err.count(" s\n") == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "m.yaml", "--json", "--quiet"], "--quiet has no effect with --json"),
        (["check", "m.yaml", "--json", "--color", "auto"], "--color has no effect with --json"),
        (["check", "m.yaml", "--schedule", "-q"], "--schedule has no effect with --quiet"),
        (["update", "app", "--dry-run", "-q"], "--dry-run has no effect with --quiet"),
    ],
)
def test_options_of_the_output_without_effect(arguments: list[str], message: str, opwest) -> None:
    done = opwest(*arguments)
    found = json.loads(done.out)["diagnostics"] if "--json" in arguments else None
    assert done.code == 1
    assert found[0]["message"] == message if found else done.err == f"opwest: error: {message}\n"


def test_quiet_excludes_verbose(opwest) -> None:
    done = opwest("check", "m.yaml", "-q", "-v")
    assert done.code == 2 and "not allowed with argument" in done.err

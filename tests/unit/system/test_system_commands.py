# SPDX-License-Identifier: Apache-2.0
"""Commands for the user's shell, and the words of commands in variables and build files."""

import ast
import importlib.util
import json
import ntpath
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from opwest.bundles import zephyr_build
from opwest.system import commands

GENERATOR = Path(__file__).resolve().parents[3] / "generator" / "opwest"
SDK = r"C:\zephyr-sdk\arm-zephyr-eabi\bin\arm-zephyr-eabi-gcc.exe"
LINES = [
    ("", []),
    ("  ", []),
    ("cc -m32", ["cc", "-m32"]),
    (SDK + r" -IC:\zephyr\include -c a.c", [SDK, r"-IC:\zephyr\include", "-c", "a.c"]),
    (r'"C:\Program Files\gcc.exe" -O2', [r"C:\Program Files\gcc.exe", "-O2"]),
    (r"-DNAME=\"any\" -o x", ['-DNAME="any"', "-o", "x"]),
    (r'"-DTEXT=\"a b\"" ""', ['-DTEXT="a b"', ""]),
    (r'"a\\" \\server\share a\\\"b', ["a\\", r"\\server\share", 'a\\"b']),
    ("a'b c", ["a'b", "c"]),
]


@pytest.fixture
def on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "IS_WINDOWS", True)


@pytest.mark.parametrize(("line", "words"), LINES)
@pytest.mark.usefixtures("on_windows")
def test_words_of_windows(line: str, words: list[str]) -> None:
    assert commands.split(line) == words
    assert commands.split(subprocess.list2cmdline(words)) == words
    assert commands.joined(words) == subprocess.list2cmdline(words)


@pytest.mark.usefixtures("on_windows")
def test_unbalanced_quote_and_program_without_quotes(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="No closing quotation"):
        commands.split('gcc "-O2')
    path = r"C:\Program Files\LLVM\bin\clang.exe"
    monkeypatch.setattr("shutil.which", lambda name: name if name == path else None)
    assert commands.split(path) == [path]
    assert commands.split(f'"{path}" -O2') == [path, "-O2"]


def test_words_of_sh() -> None:
    assert commands.split("cc '-DX=\"a b\"' a\\ b") == ["cc", '-DX="a b"', "a b"]
    assert commands.joined(["cc", "a b"]) == "cc 'a b'"


@pytest.mark.parametrize(
    "text", ["a", "a b", "it's", "$x", "a;b", "smpclient[serial]>=7.3", "", "100%", "é", "a,b", "@x"]
)
def test_quoted_words(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shlex.split(commands.quoted(text)) == [text]
    monkeypatch.setattr(commands, "IS_WINDOWS", True)
    word = commands.quoted(text)
    if word == text:
        assert text and not set(text) & set(" '\"`$;,@(){}[]<>|&#*?")
    else:  # PowerShell's verbatim string, in which only its own quote is doubled
        assert word[0] == word[-1] == "'" and word[1:-1].replace("''", "'") == text


@pytest.mark.parametrize("on_host", ["posix", "nt"])
def test_packages_are_installed_by_one_command_everywhere(on_host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """cmd does not remove single quotes; double ones are removed by sh, PowerShell and cmd."""
    monkeypatch.setattr(commands, "IS_WINDOWS", on_host == "nt")
    assert commands.pip_install("opwest[models]") == 'pip install "opwest[models]"'
    assert commands.pip_install("cryptography>=42") == 'pip install "cryptography>=42"'
    assert commands.pip_install("west") == "pip install west"


FOR_ONE_SYSTEM = re.compile(
    r"\b(?:sudo|apt(?:-get)?|brew|dnf|yum|choco|winget) |\bexport [A-Z_]|\bsource [\w./~]*activate|pip install '|"
    r"\brm -|\bmkdir -p|\bchmod \+|/usr/|\bln -s"
)
WORDS_OF_ONE_SYSTEM = re.compile(
    r"\b(?:sudo|apt|brew|dnf|yum|choco|winget|export|activate|rm|mkdir|chmod|ln)\b|/usr/|pip install '"
)
"""Each file with such a string has one of these words."""
HOMES = {"doctor/system.py", "doctor/toolchains.py", "system/commands.py"}


def test_messages_name_no_command_of_one_system() -> None:
    """Strings of opwest except docstrings; `opwest doctor` selects commands by the system."""
    found = {}
    for path in GENERATOR.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if not WORDS_OF_ONE_SYSTEM.search(text):
            continue
        tree = ast.parse(text)
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        texts = [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        seen = [node.value for node in texts if id(node) not in docs and FOR_ONE_SYSTEM.search(node.value)]
        if seen:
            found[path.relative_to(GENERATOR).as_posix()] = seen
    assert {name: texts for name, texts in found.items() if name not in HOMES} == {}


def test_commands_of_sh() -> None:
    assert commands.program("/a b/python") == "'/a b/python'"
    assert commands.in_directory("/a b", "west update") == "cd '/a b' && west update"
    assert commands.setting({"A": "x", "B": "y z"}) == "export A=x B='y z'"
    assert commands.unsetting("A") == "unset A"
    assert commands.home("zephyrproject") == "~/zephyrproject"


@pytest.mark.usefixtures("on_windows")
def test_commands_of_powershell() -> None:
    assert commands.program(r"C:\Python\python.exe") == r"C:\Python\python.exe"
    assert commands.program(r"C:\Program Files\python.exe") == r"& 'C:\Program Files\python.exe'"
    assert commands.in_directory(r"C:\my z", "west update") == r"cd 'C:\my z'; west update"
    assert commands.setting({"A": "x", "B": "it's"}) == "$env:A = 'x'; $env:B = 'it''s'"
    assert commands.unsetting("A") == "Remove-Item Env:A"
    assert commands.home("zephyrproject") == "$HOME/zephyrproject"


def test_group_of_a_serial_device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The command exists on Linux only; its group is that of the device."""
    monkeypatch.setattr(sys, "platform", "darwin")
    assert commands.joining_group("/dev/cu.usbmodem1") is None
    monkeypatch.setattr(sys, "platform", "win32")
    assert commands.joining_group("COM3") is None
    monkeypatch.setattr(sys, "platform", "linux")

    class Groups:
        @staticmethod
        def getgrgid(_: int) -> object:
            return type("Group", (), {"gr_name": name})

    monkeypatch.setattr(commands, "module", lambda _: Groups)
    device = str(tmp_path)
    name = "uucp"
    assert commands.joining_group(device) == "sudo usermod -aG uucp $USER"
    assert commands.joining_group(str(tmp_path / "absent")) == "sudo usermod -aG dialout $USER"
    name = "root"
    assert commands.joining_group(device) is None
    monkeypatch.setattr(commands, "module", lambda _: None)
    assert commands.joining_group(device) is None


@pytest.mark.usefixtures("on_windows")
def test_compiler_of_a_build_on_windows() -> None:
    """CMake writes command lines of Windows to compile_commands.json."""
    line = SDK + r" -DNAME=\"app\" -imacros C:\b\autoconf.h -o CMakeFiles\app.dir\main.c.obj -c C:\app\main.c"
    row = {"directory": "C:/b", "command": line, "file": "C:/app/main.c"}
    words = zephyr_build._command(json.loads(json.dumps([row])))
    assert words is not None and words[:2] == [SDK, '-DNAME="app"']


SCRIPT = Path(__file__).resolve().parents[3] / "zephyr_module" / "scripts" / "check_operators.py"


def test_operator_check_of_a_build_on_windows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The program of Zephyr's builds, which uses no package: CMake writes the objects with backslashes."""
    specification = importlib.util.spec_from_file_location("check_operators_of_windows", SCRIPT)
    assert specification is not None and specification.loader is not None
    program = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(program)
    obj = r"modules\m\CMakeFiles\m_operators.dir\src\conv.c.obj"
    rows = [
        {"directory": "C:/b", "command": f'{SDK} -DX=\\"any\\" -o {written} -c {file}', "file": file}
        for written, file in [(obj, r"C:\app\src\conv.c"), (r"other.dir\x.obj", r"C:\app\x.c")]
    ]
    place = tmp_path / "compile_commands.json"
    place.write_text(json.dumps(rows), encoding="utf-8")
    monkeypatch.setattr(program, "_IS_WINDOWS", True)
    monkeypatch.setattr(program, "_key", lambda path: ntpath.normcase(ntpath.normpath(path)))
    found = program._commands(str(place), ["m_operators"])
    assert found == {r"c:\app\src\conv.c": (obj.replace("\\", "/"), rows[0]["command"], "C:/b")}
    words = program._words(rows[0]["command"])
    assert words == [SDK, '-DX="any"', "-o", obj, "-c", r"C:\app\src\conv.c"]
    for line, expected in LINES:
        if "\\\\" not in line:  # CMake writes no such word
            assert program._words(line) == expected, line

# SPDX-License-Identifier: Apache-2.0
"""Locks, groups of processes, limits and commands, also of Windows, whose modules and programs are replaced here."""

import ast
import importlib.util
import json
import ntpath
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
from opwest.base import commands, files, processes
from opwest.base.commands import module
from opwest.bundles import zephyr_build
from opwest.compiler import child as importing
from opwest.project import journal
from requirements_support import skip_here


class Msvcrt:
    """msvcrt.locking() of Windows, whose locks belong to handles and are mandatory."""

    LK_NBLCK, LK_UNLCK = 2, 0

    def __init__(self):
        self.held: dict[int, int] = {}

    def locking(self, handle, mode, count):
        assert count == 1 and os.lseek(handle, 0, os.SEEK_CUR) == 0
        inode = os.fstat(handle).st_ino
        if mode == self.LK_UNLCK:
            if self.held.get(inode) != handle:
                raise PermissionError(13, "Permission denied")
            del self.held[inode]
        elif inode in self.held:
            raise PermissionError(13, "Permission denied")
        else:
            self.held[inode] = handle


@pytest.fixture(params=["fcntl", "msvcrt"])
def implementation(request, monkeypatch):
    if request.param == "msvcrt":
        monkeypatch.setattr(journal, "_fcntl", None)
        monkeypatch.setattr(journal, "_msvcrt", Msvcrt())
    elif module("fcntl") is None:
        skip_here("not a POSIX system")
    return str(request.param)


def test_lock_is_exclusive(implementation, tmp_path):
    first = os.open(tmp_path / "mutex", os.O_RDWR | os.O_CREAT)
    second = os.open(tmp_path / "mutex", os.O_RDWR)
    try:
        assert journal.lock(first)
        assert not journal.lock(second)
        journal.unlock(first)
        os.close(first)
        assert journal.lock(second)
        journal.unlock(second)
        journal.unlock(second)  # nothing to release
    finally:
        os.close(second)


def test_other_error_of_a_lock(implementation, tmp_path):
    file = os.open(tmp_path / "mutex", os.O_RDWR | os.O_CREAT)
    os.close(file)
    with pytest.raises(OSError, match="Bad file descriptor"):
        journal.lock(file)


def test_module_that_the_system_lacks():
    assert module("no_such_module") is None and module("os") is os


SLEEPS = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {!r}]); time.sleep(60)"
GRANDCHILD = "import os, time; open({!r}, 'w').write(str(os.getpid())); time.sleep(60)"


def is_alive(process):
    """Whether a process exists and is not a zombie."""
    try:
        return " Z " not in Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return False


def test_group_ends_with_its_descendants(tmp_path):
    if not Path("/proc/self/stat").exists():
        skip_here("processes are observed in /proc")
    place = tmp_path / "pid"
    command = [sys.executable, "-c", SLEEPS.format(GRANDCHILD.format(str(place)))]
    process = subprocess.Popen(command, **processes.group())
    end = time.monotonic() + 20
    while (not place.exists() or not place.read_text(encoding="utf-8")) and time.monotonic() < end:
        time.sleep(0.02)
    grandchild = int(place.read_text(encoding="utf-8"))
    assert is_alive(grandchild)
    processes.end_group(process)
    assert process.returncode is not None
    while is_alive(grandchild) and time.monotonic() < end:
        time.sleep(0.02)
    assert not is_alive(grandchild)
    processes.end_group(process)  # has ended


@pytest.mark.parametrize("works", [True, False])
def test_group_of_windows(tmp_path, monkeypatch, works):
    """taskkill ends the tree; without it, at least the process itself ends."""
    monkeypatch.setattr(processes, "_killpg", None)
    monkeypatch.setattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0, raising=False)
    assert processes.group() == {"creationflags": 0}
    if works:
        program = tmp_path / "taskkill"
        program.write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/words\nkill -9 "$2"\n', encoding="utf-8")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH'] if works else ''}")
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], **processes.group())
    processes.end_group(process)
    assert process.returncode is not None and process.returncode != 0
    if works:
        assert (tmp_path / "words").read_text(encoding="utf-8") == f"/PID {process.pid} /T /F\n"
    processes.end_group(process)


@pytest.mark.parametrize(
    ("code", "name"),
    [(0, None), (1, None), (-11, "SIGSEGV"), (-250, "signal 250"), (0xC0000005, "exception 0xC0000005")],
)
def test_signals_and_exceptions(code, name):
    assert processes.signal_name(code) == name
    assert not processes.exceeded_time(code)


def test_file_that_another_program_has_open(tmp_path, monkeypatch):
    attempts = []

    def busy():
        attempts.append(1)
        if len(attempts) < 3:
            raise PermissionError(13, "Permission denied")

    with pytest.raises(PermissionError):
        files.retried(busy)
    assert len(attempts) == 1, "other systems do not refuse it: the error is final"
    attempts.clear()
    monkeypatch.setattr(files, "_CAN_BE_IN_USE", True)
    files.retried(busy)
    assert len(attempts) == 3
    monkeypatch.setattr(files, "_PAUSES", (0.0,))
    attempts.clear()
    with pytest.raises(PermissionError):
        files.retried(busy)


def test_limits_without_the_module(monkeypatch):
    monkeypatch.setattr(processes, "_resource", None)
    assert not processes.limits_time()
    processes.limit_process(1)
    processes.limit_next_request(0.0)


def test_import_is_ended_by_its_parent_where_it_cannot_limit_itself(monkeypatch):
    monkeypatch.setattr(importing, "limits_time", lambda: False)
    monkeypatch.setattr(importing, "SECONDS", 0.2)
    code = "import time; time.sleep(60)"
    with (
        subprocess.Popen([sys.executable, "-c", code], text=True, encoding="utf-8") as process,
        importing._time_limit(process) as is_expired,
    ):
        process.wait(20)
        assert is_expired() and process.returncode != 0
        assert importing._failure(process.returncode, is_expired()).startswith("took more than")


# --- Commands for the user's shell, and the words of commands in variables and build files

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
def on_windows(monkeypatch):
    monkeypatch.setattr(commands, "IS_WINDOWS", True)


@pytest.mark.parametrize(("line", "words"), LINES)
@pytest.mark.usefixtures("on_windows")
def test_words_of_windows(line, words):
    assert commands.split(line) == words
    assert commands.split(subprocess.list2cmdline(words)) == words
    assert commands.joined(words) == subprocess.list2cmdline(words)


@pytest.mark.usefixtures("on_windows")
def test_unbalanced_quote_and_program_without_quotes(monkeypatch):
    with pytest.raises(ValueError, match="No closing quotation"):
        commands.split('gcc "-O2')
    path = r"C:\Program Files\LLVM\bin\clang.exe"
    monkeypatch.setattr("shutil.which", lambda name: name if name == path else None)
    assert commands.split(path) == [path]
    assert commands.split(f'"{path}" -O2') == [path, "-O2"]


def test_words_of_sh():
    assert commands.split("cc '-DX=\"a b\"' a\\ b") == ["cc", '-DX="a b"', "a b"]
    assert commands.joined(["cc", "a b"]) == "cc 'a b'"


@pytest.mark.parametrize(
    "text", ["a", "a b", "it's", "$x", "a;b", "smpclient[serial]>=7.3", "", "100%", "é", "a,b", "@x"]
)
def test_quoted_words(text, monkeypatch):
    assert shlex.split(commands.quoted(text)) == [text]
    monkeypatch.setattr(commands, "IS_WINDOWS", True)
    word = commands.quoted(text)
    if word == text:
        assert text and not set(text) & set(" '\"`$;,@(){}[]<>|&#*?")
    else:  # PowerShell's verbatim string, in which only its own quote is doubled
        assert word[0] == word[-1] == "'" and word[1:-1].replace("''", "'") == text


@pytest.mark.parametrize("on_host", ["posix", "nt"])
def test_packages_are_installed_by_one_command_everywhere(on_host, monkeypatch):
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
HOMES = {"base/system.py", "zephyr/sdk.py", "base/commands.py"}


def test_messages_name_no_command_of_one_system():
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


def test_commands_of_sh():
    assert commands.program("/a b/python") == "'/a b/python'"
    assert commands.in_directory("/a b", "west update") == "cd '/a b' && west update"
    assert commands.setting({"A": "x", "B": "y z"}) == "export A=x B='y z'"
    assert commands.unsetting("A") == "unset A"
    assert commands.home("zephyrproject") == "~/zephyrproject"


@pytest.mark.usefixtures("on_windows")
def test_commands_of_powershell():
    assert commands.program(r"C:\Python\python.exe") == r"C:\Python\python.exe"
    assert commands.program(r"C:\Program Files\python.exe") == r"& 'C:\Program Files\python.exe'"
    assert commands.in_directory(r"C:\my z", "west update") == r"cd 'C:\my z'; west update"
    assert commands.setting({"A": "x", "B": "it's"}) == "$env:A = 'x'; $env:B = 'it''s'"
    assert commands.unsetting("A") == "Remove-Item Env:A"
    assert commands.home("zephyrproject") == "$HOME/zephyrproject"


def test_group_of_a_serial_device(monkeypatch, tmp_path):
    """The command exists on Linux only; its group is that of the device."""
    monkeypatch.setattr(sys, "platform", "darwin")
    assert commands.joining_group("/dev/cu.usbmodem1") is None
    monkeypatch.setattr(sys, "platform", "win32")
    assert commands.joining_group("COM3") is None
    monkeypatch.setattr(sys, "platform", "linux")

    class Groups:
        @staticmethod
        def getgrgid(_):
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
def test_compiler_of_a_build_on_windows():
    """CMake writes command lines of Windows to compile_commands.json."""
    line = SDK + r" -DNAME=\"app\" -imacros C:\b\autoconf.h -o CMakeFiles\app.dir\main.c.obj -c C:\app\main.c"
    row = {"directory": "C:/b", "command": line, "file": "C:/app/main.c"}
    words = zephyr_build._command(json.loads(json.dumps([row])))
    assert words is not None and words[:2] == [SDK, '-DNAME="app"']


SCRIPT = Path(__file__).resolve().parents[3] / "zephyr_module" / "scripts" / "check_operators.py"


def test_operator_check_of_a_build_on_windows(monkeypatch, tmp_path):
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

# SPDX-License-Identifier: Apache-2.0
"""Names of macros and types: the rule against the headers of the installed compilers, and a model with such names."""

import shutil
import subprocess

import names_project
import pytest
from c_support import STRICT, build, compile_all, includes, portable_sources, run
from golden_support import generate_quickly
from opwest.model.types.c_names import fault_of_name, member_name
from requirements_support import need_compiler

HEADERS = """assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign
stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string strings tgmath threads time
uchar wchar wctype unistd pthread sched poll semaphore dirent fcntl termios malloc getopt libgen
mqueue net/if netdb netinet/in search spawn sys/ioctl sys/msg sys/resource sys/select sys/socket
sys/stat sys/time sys/types sys/wait sys/cdefs sys/param sys/lock reent""".split()
PREPROCESSORS = {
    "gcc": ["gcc", "-std=gnu11", "-xc"],
    "gcc-m32": ["gcc", "-m32", "-std=c17", "-xc"],
    "g++": ["g++", "-std=gnu++20", "-xc++"],
    "clang": ["clang", "-std=gnu17", "-xc"],
    "newlib": ["arm-none-eabi-gcc", "-std=gnu11", "-xc"],
}


@pytest.mark.parametrize("name", PREPROCESSORS)
def test_no_macro_of_a_compiler_or_library_is_a_member(name):
    command = PREPROCESSORS[name]
    need_compiler(command[0], [flag for flag in command if flag == "-m32"])
    words = [*command, "-D_GNU_SOURCE", "-E", "-dM", "-"]
    macros = set()
    lines = [f"#if __has_include(<{header}.h>)\n#include <{header}.h>\n#endif\n" for header in HEADERS]
    for text in ("".join(lines), *lines):
        done = subprocess.run(words, input=text, capture_output=True, text=True, check=False)
        macros.update(line.split(maxsplit=2)[1] for line in done.stdout.splitlines())
        if done.returncode == 0 and text not in lines:  # otherwise one header excludes another: each by itself
            break
    names = {macro for macro in macros if "(" not in macro and fault_of_name(macro) is None}
    assert len(names) > 300
    assert {name for name in names if member_name(name) in macros} == set()


def test_members_differ_and_lower_case_is_kept():
    names = [*names_project.INPUTS, "m_", "m_m_", "_", "_x", "am_A", "mA", "m", "x", "input_1"]
    names += ["m_" * count + name for count in (1, 2, 3) for name in ("A", "a", "x_t", "errno")]
    assert len({member_name(name) for name in names}) == len(set(names))
    assert all(member_name(name) in (name, f"m_{name}") for name in names)
    kept = [name for name in names if member_name(name) == name]
    assert kept == "image assert m_ m_m_ m x input_1 m_a m_m_a m_m_m_a".split()


def test_model_with_names_of_macros_runs(metadata, tmp_path):
    need_compiler("gcc")
    path = names_project.write(tmp_path / "source")
    app = generate_quickly([path], tmp_path / "app", vendored=True, metadata=metadata)
    flags = ["-std=gnu11", "-DKERNEL", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    program = build(app, tmp_path / "build", app / "src" / "main.c", flags=flags)
    assert run([program], tmp_path) == names_project.EXPECTED
    headers = [path.read_text() for path in app.glob("models/*/objects/*/rename.h")]
    assert headers and all("#undef KERNEL\n" in text for text in headers)


def test_emitted_files_with_names_of_macros_compile_without_warnings(tmp_path):
    need_compiler("gcc")
    app = generate_quickly([names_project.write(tmp_path / "source")], tmp_path / "app", vendored=True)
    compile_all(tmp_path / "c", portable_sources(app), "gcc", [*STRICT, "-DKERNEL", "-fsyntax-only"], includes(app))
    flags = ["-Wall", "-Wextra", "-Werror", "-DKERNEL", "-fsyntax-only"]
    # C++ reads the headers, after those of the library.
    for compiler, *more in (
        ("arm-none-eabi-gcc", "-std=gnu11", "-mcpu=cortex-m3", "-mthumb"),
        ("g++", "-std=gnu++17", "-xc++"),
    ):
        if shutil.which(compiler):
            compile_all(tmp_path / compiler, [app / "src" / "main.c"], compiler, [*more, *flags], includes(app))

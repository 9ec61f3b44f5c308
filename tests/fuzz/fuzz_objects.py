# SPDX-License-Identifier: Apache-2.0
"""Readers of ELF objects, archives, C sources and other output of compilers."""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random

from elf_writer import archive_of, arm_object, build_elf
from fuzz_mutators import mutate_bytes, text_mutator
from fuzz_readers import Read, Reader, plain, said
from opwest.objects.dwarf_signatures import signatures
from opwest.objects.elf import parse_elf
from opwest.objects.facts import ObjectError
from opwest.objects.inspect import inspect_object, read_member
from opwest.objects.report import as_json, as_text
from opwest.objects.rewriting import rename_symbols
from opwest.objects.stack import read_su, stack_usage

_SOURCE = """\
struct device;
typedef struct { const short *data; union { int a; float b; } u; enum { ONE, TWO } e; } args_t;
static int state;
extern void *memcpy(void *, const void *, unsigned long);
int op(const signed char *restrict x, short *y, const struct device *dev) { return x[0] + y[0] + (dev != 0); }
void grow(int n, const float v[4], args_t *a) { char b[n]; memcpy(b, a, n); state += b[n - 1] + (int)v[0]; }
__attribute__((weak)) double many(int a, int b, long c, double d, char *e, ...) { return a + b + c + d + *e; }
"""
_COMPILERS = (
    ("gcc", "-g", "-O1"),
    ("gcc", "-g", "-O1", "-m32", "-gdwarf-4", "-ffreestanding"),
    ("clang", "-g", "-O1", "-fstack-size-section"),
    ("clang", "-g", "-O1", "--target=thumbv7em-none-eabihf", "-ffreestanding", "-fno-exceptions"),
    ("arm-none-eabi-gcc", "-g", "-O1", "-mthumb", "-mcpu=cortex-m4", "-fexceptions"),
    ("riscv64-unknown-elf-gcc", "-g", "-O1", "-ffreestanding"),
)


@cache
def compiled() -> tuple[bytes, ...]:
    """Return objects of every installed compiler; a hand-made one if there is none."""
    found = [arm_object()]
    with tempfile.TemporaryDirectory() as work:
        for compiler, *flags in _COMPILERS:
            if shutil.which(compiler):
                command = [compiler, *flags, "-c", "-x", "c", "-", "-o", f"{work}/x.o"]
                done = subprocess.run(command, input=_SOURCE, text=True, capture_output=True, check=False)
                if done.returncode == 0:
                    found.append(Path(work, "x.o").read_bytes())
    return tuple(found)


def _elf_seeds() -> Sequence[bytes]:
    own = [arm_object(), build_elf(), build_elf(bits=32, endian="big", machine=8), build_elf(symbol_table=False)]
    return own + [content for content in compiled()[1:] if len(content) < 8192]


def _archive_seeds() -> Sequence[bytes]:
    return [archive_of(arm_object(), build_elf(), build_elf()), archive_of(build_elf()), b"!<arch>\n"]


def mutate_sections(content: bytes, chance: Random, corpus: Sequence[bytes]) -> bytes:
    """Return an object with changes inside a section of debug or unwind information, mostly of the same length."""
    if chance.random() < 0.1:
        return mutate_bytes(content, chance, corpus)
    try:
        elf = parse_elf(content)
    except ObjectError:
        return mutate_bytes(content, chance, corpus)
    kinds = (".debug", ".eh_frame", ".stack_sizes", ".ARM.ex", ".rel")
    found = [s for s in elf.sections if s.size and s.kind != 8 and s.name.startswith(kinds)]
    if not found:
        return mutate_bytes(content, chance, corpus)
    section = chance.choice(found)
    inner = mutate_bytes(elf.data(section), chance, [elf.data(other) for other in found])
    inner = inner[: section.size].ljust(section.size, b"\0")
    return content[: section.offset] + inner + content[section.offset + section.size :]


def _start_elf(_folder: Path) -> Read:
    names = {"op": "model__op", "memcpy": "model__memcpy", "state": "model__state"}

    def read(content: bytes) -> str:
        member = read_member("x.o", content)
        renamed = read_member("x.o", rename_symbols(content, names))
        assert len(renamed.symbols) == len(member.symbols)
        return f"{member.abi.machine} {len(member.symbols) > 2} {[f[:20] for f in member.faults]}"

    return read


def _start_dwarf(_folder: Path) -> Read:
    def read(content: bytes) -> str:
        try:
            member = read_member("x.o", content)
        except ObjectError as fault:
            return said(fault)
        found = signatures(member, names=True)
        return plain(found) if isinstance(found, str) else str(len(found))

    return read


def _start_stack(_folder: Path) -> Read:
    def read(content: bytes) -> str:
        member = read_member("x.o", content)
        found = stack_usage(member)
        assert all(use.bytes is None or use.bytes >= 0 for use in found.values())
        return str(sorted({(use.source or "", use.exact) for use in found.values()}))

    return read


def _start_inspect(folder: Path) -> Read:
    path = folder / "x.a"

    def read(content: bytes) -> str:
        path.write_bytes(content)
        try:
            item = inspect_object(path)
        except ObjectError as fault:
            return said(fault)
        text = as_text("x", item)
        assert "\x1b" not in text
        as_json("x", item)
        return f"{type(item).__name__} {len(getattr(item, 'members', ()))}"

    return read


_C_SEEDS = (
    _SOURCE,
    '#include <stdint.h>\n#if A\nint a, *b[3] = {0};\n#else\nstatic const char *const c = "x";\n#endif\n',
    "#define F(x) int f_##x(int x)\nF(a)\n{\n\tstatic int n;\n\treturn g(n++);\n}\nint (*h(void))(int) { return 0; }\n",
    "/* remark */ // more \\\n continued\nint k(a, b) int a; char *b; { return '\\'' + \"\\\"\"[0]; }\n",
)
_C_WORDS = (
    "int static extern const void struct union enum typedef inline register _Thread_local ( ) { } [ ] * ** ; , = # "
    '#if #else #endif #define #include \\ // /* */ \' " ... <: :> %: ??( asm __attribute__((weak)) L"x" 0x1p3 ä'
).split()


def _start_c(_folder: Path) -> Read:
    from opwest.objects.c_source import read_c_source

    path = Path("x.c")

    def read(content: bytes) -> str:
        found = read_c_source(path, content)
        return f"{len(found.functions)} {len(found.globals)} {len(found.state)} {len(found.calls)} {bool(found.unread)}"

    return read


_CPP_SEEDS = (
    f'extern "C" {{\n{_SOURCE}}}\n',
    "namespace a::b { class C { static int n; int f() { static int k; return k++; } }; }\nint a::b::C::n = 0;\n",
    "template <typename T, int N> struct S { T t[N]; };\ntemplate <> struct S<int, 1> { using A = int &&; };\n",
    'extern "C" int f(int &a) noexcept;\nint f(int &a) noexcept { return [&](auto b) -> int { return b; }(1\'000); }\n'
    'const char *t = R"x(")y" )x";\nint operator+(A a, A b) { return 0; }\nA::operator int() const { return 1; }\n',
)
_CPP_WORDS = (
    *_C_WORDS,
    *'namespace class template typename using operator constexpr inline :: && < > [] [[a]] R"x( )x" 1\'0 "C"'.split(),
)


def _start_cpp(_folder: Path) -> Read:
    from opwest.objects.cpp_source import read_cpp_source

    path = Path("x.cpp")

    def read(content: bytes) -> str:
        found = read_cpp_source(path, content)
        assert {f.name for f in found.c_functions} <= {f.name for f in found.functions}
        assert all(name.isidentifier() for name in found.scope)
        return f"{len(found.c_functions)} {len(found.scope)} {len(found.state)} {len(found.calls)} {bool(found.unread)}"

    return read


def _start_su(folder: Path) -> Read:
    path = folder / "x.su"

    def read(content: bytes) -> str:
        path.write_bytes(content)
        found = read_su(path)
        assert all(entry.bytes >= 0 for entry in found.values())
        return str(sorted({entry.exact for entry in found.values()}))

    return read


_SU_SEEDS = (
    b"x.c:3:5:op\t48\tstatic\nx.c:9:6:grow\t64\tdynamic,bounded\n",
    b"a:b.c:3:op\t48\tdynamic\r\nC:\\x.c:1:1:std::f(int)\t0\tstatic\n",
)
_SU_WORDS = "static dynamic 0 -1 999999999999999999999 : \t".split(" ")

_REFUSES = (ObjectError,)
READERS = (
    Reader("elf", _elf_seeds, _start_elf, refuses=_REFUSES),
    Reader("archive", _archive_seeds, _start_inspect),
    Reader("dwarf", compiled, _start_dwarf, mutate_sections),
    Reader("stack", compiled, _start_stack, mutate_sections, refuses=_REFUSES),
    Reader("csource", lambda: _C_SEEDS, _start_c, text_mutator(_C_WORDS, pattern=r"\w+|\S"), refuses=_REFUSES),
    Reader("cppsource", lambda: _CPP_SEEDS, _start_cpp, text_mutator(_CPP_WORDS, pattern=r"\w+|\S"), refuses=_REFUSES),
    Reader("su", lambda: _SU_SEEDS, _start_su, text_mutator(_SU_WORDS), refuses=_REFUSES),
)

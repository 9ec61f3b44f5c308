# SPDX-License-Identifier: Apache-2.0
"""Calling conventions: from instructions, from attributes of sources, and from recorded options."""

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from campaign import sized
from objects_factory import compile_object
from opwest.objects.c_source import conventions_of
from opwest.objects.compilers import abi_options
from opwest.objects.dwarf_signatures import DeclaredParameter, compare, signatures
from opwest.objects.entry_code import EntryCode, Finding, call_registers
from opwest.objects.facts import ObjectFile
from opwest.objects.inspect import inspect_object, read_member
from opwest.objects.linkability import judge_file, records_conventions, unrecorded_options
from opwest.objects.report import as_json, as_text
from requirements_support import need, need_compiler

# --- Calling conventions from instructions: attributes are refused, and no function of the C convention is

POINTERS = ("const int *x, int *y", ("const int32_t *", "int32_t *"))
COUNTED = ("const int *x, int n, int *y", ("const int32_t *", "int32_t", "int32_t *"))
FLOAT = ("const float *x, float k, float *y", ("const float *", "float", "float *"))
DOUBLE = ("const float *x, double k, float *y", ("const float *", "double", "float *"))
FUNCTIONS = {
    "loop": (*POINTERS, "for (int i = 0; i < 8; i++) y[i] = x[i] * 2; return 0;"),
    "float": (*FLOAT, "for (int i = 0; i < 8; i++) y[i] = x[i] * k; return 0;"),
    "double": (*DOUBLE, "for (int i = 0; i < 8; i++) y[i] = x[i] * k; return 0;"),
    "bits": (*DOUBLE, "long long b; __builtin_memcpy(&b, &k, 8); y[0] = (float)(b >> 40) + x[0]; return 0;"),
    "counted": (*COUNTED, "for (int i = 0; i < n; i++) y[i] = x[i] * 2; return 0;"),
    "largest": (
        *COUNTED,
        "if (!x || n < 3) return -1; int m; for (int i = 0; i < n; i++) { if (i == 0 || x[i] > m) m = x[i]; } "
        "*y = m; return 0;",
    ),
    "wrapper": (*POINTERS, "extern int g(const int *, int *); return g(x, y);"),
    "caller": (*POINTERS, "extern int g(const int *, int); return g(x, y[0]) + 1;"),
    "nothing": (*POINTERS, "return 0;"),
    "memcpy": (*POINTERS, "__builtin_memcpy(y, x, 400); return 0;"),
    "shifts": (*COUNTED, "long long s = 0; while (n-- > 0) s += (long long)x[n] << (n & 31); *y = s; return 0;"),
    "seven": (
        "int *a, int *b, int *c, int *d, int *e, int *f, int *g",
        ("int32_t *",) * 7,
        "*g = *a + *b + *c + *d + *e + *f; return 0;",
    ),
}
"""Parameters, their types in manifests, and the body."""
_M4 = ("-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16")
ARM = "arm-none-eabi-gcc"
TARGETS = {
    "gcc x86-64": ("gcc", (), ("ms_abi",)),
    "gcc x86-64-v3": ("gcc", ("-march=x86-64-v3",), ("ms_abi",)),
    "clang x86-64": ("clang", (), ("ms_abi",)),
    "gcc i386": ("gcc", ("-m32",), ("regparm(1)", "regparm(3)", "fastcall", "stdcall")),
    "clang i386": ("clang", ("-m32",), ("regparm(3)", "fastcall", "stdcall")),
    "gcc softfp": (ARM, (*_M4, "-mfloat-abi=softfp"), ('pcs("aapcs-vfp")',)),
    "gcc hard": (ARM, (*_M4, "-mfloat-abi=hard"), ('pcs("aapcs")',)),
}


def finding(folder, compiler, flags, name, attribute=""):
    parameters, types, body = FUNCTIONS[name]
    head = f"__attribute__(({attribute})) " if attribute else ""
    path = compile_object(folder, f"{head}int f({parameters}) {{ {body} }}\n", compiler, flags)
    return EntryCode(read_member(path.name, path.read_bytes())).convention("f", types, "int32_t")


LEVELS = ("-O0", "-O2", "-Os")
PAIRS = [(target, level) for target in TARGETS for level in LEVELS]
SAMPLE = [
    *((target, LEVELS[number % 3]) for number, target in enumerate(TARGETS)),
    *((target, level) for target in ("gcc x86-64", "gcc hard") for level in LEVELS),
]


@pytest.mark.parametrize(("target", "level"), dict.fromkeys(sized(SAMPLE, PAIRS)))
def test_functions_of_c_pass_and_attributes_are_refused(target, level, tmp_path):
    compiler, flags, attributes = TARGETS[target]
    if compiler == ARM:
        need(compiler)
    else:
        need_compiler(compiler, tuple(f for f in flags if f == "-m32"))
    flags = (*flags, level, "-ffreestanding")
    for name in FUNCTIONS:
        assert finding(tmp_path, compiler, flags, name).verdict != "refused", name
    assert finding(tmp_path, compiler, flags, "loop").verdict == "verified"
    for attribute in attributes:
        name = "float" if attribute.startswith("pcs") else "loop"
        assert finding(tmp_path, compiler, flags, name, attribute).verdict == "refused", attribute


def test_option_without_record(tmp_path):
    """Objects without debug information: -mabi=ms and -mregparm show in the instructions."""
    need_compiler("gcc", ("-m32",))
    found = finding(tmp_path, "gcc", ("-O2", "-mabi=ms"), "loop")
    assert found == Finding(
        "refused",
        "uses the content of rdx and rcx at its begin, where C passes no argument of it",
        "arguments in rdi, rsi",
    )
    assert finding(tmp_path, "gcc", ("-O2", "-m32", "-mregparm=3"), "loop").expected == "arguments on the stack"
    assert "removes 8 bytes" in finding(tmp_path, "gcc", ("-O2", "-m32", "-mrtd"), "loop").text


def test_pcs_matters_for_floats_only(tmp_path):
    need(ARM)
    flags = (*_M4, "-mfloat-abi=hard", "-O2")
    assert finding(tmp_path, ARM, flags, "loop", 'pcs("aapcs")').verdict == "verified"


def test_wrapper_is_unknown(tmp_path):
    need("gcc")
    assert finding(tmp_path, "gcc", ("-O2",), "wrapper").verdict == "unknown"


def test_attributes_of_sources():
    source = b"""
#define MS __attribute__((ms_abi))
/* ms_abi */
__attribute__((noinline, ms_abi)) int f(const int *x) { return *x; }
MS int g(const int *x) { return *x; }
int h(const int *x) __attribute__((__pcs__("aapcs")));
int h(const int *x) { return *x; }
int __attribute__((regparm(3))) i(const int *x) { return *x; }
[[gnu::fastcall]] int j(const int *x) { return *x; }
int __stdcall k(const int *x) { return *x; }
__attribute__((noinline)) int l(const int *interrupt) { int pcs = 1; return *interrupt + pcs; }
"""
    expected = {"f": "ms_abi", "g": "ms_abi", "h": 'pcs("aapcs")', "i": "regparm(3)", "j": "fastcall", "k": "__stdcall"}
    for cplusplus in (False, True):
        assert conventions_of(source, cplusplus=cplusplus) == expected


LIBM = {
    "float64": "sin cos tan asin acos atan sinh cosh tanh exp log log2 log10 sqrt cbrt ceil floor round trunc",
    "float32": "sinf cosf tanf asinf acosf atanf sinhf coshf tanhf expf logf log2f log10f sqrtf cbrtf ceilf",
}
"""Functions of one argument, by its dtype."""


@pytest.mark.parametrize(
    "flags",
    [("-mcpu=cortex-m3",), ("-mcpu=cortex-m7", "-mfpu=fpv5-d16", "-mfloat-abi=hard"), (*_M4, "-mfloat-abi=hard")],
)
def test_functions_of_newlib_pass(flags):
    """Code of a library that others compiled, with known signatures."""
    need(ARM)
    command = [ARM, "-mthumb", *flags, "-print-file-name=libm.a"]
    path = Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
    types = {name: {"float64": "double", "float32": "float"}[dtype] for dtype in LIBM for name in LIBM[dtype].split()}
    found = {
        name: EntryCode(member).convention(name, (types[name],), types[name]).verdict
        for member in inspect_object(path).members
        for name in member.defined
        if name in types
    }
    assert found.keys() == types.keys()
    assert "refused" not in found.values()


# --- Options that change the ABI, as debug information records them

SOURCE = "int op(const int *x, int *y);\nint op(const int *x, int *y) { *y = *x; return 0; }\n"


def made(folder, compiler, *flags, source=SOURCE):
    item = inspect_object(compile_object(folder, source, compiler, flags))
    assert isinstance(item, ObjectFile)
    return item.members[0]


@pytest.mark.parametrize(
    ("compiler", "flags", "faults", "known"),
    [
        ("gcc", ["-g"], [], True),
        ("gcc", ["-g", "-ffixed-rbx", "-mno-red-zone", "-mabi=sysv"], [], True),
        ("gcc", ["-g", "-mabi=ms", "-fcall-saved-rcx"], ["-fcall-saved-rcx", "-mabi=ms"], True),
        ("gcc", ["-g", "-m32", "-mregparm=3", "-mrtd"], ["-mregparm=3", "-mrtd"], True),
        ("gcc", ["-g", "-m32", "-mregparm=0"], [], True),
        ("gcc", ["-g", "-gno-record-gcc-switches", "-mabi=ms"], [], False),
        ("gcc", ["-mabi=ms"], [], False),
        ("clang", ["-g"], [], False),
        ("clang", ["-g", "-grecord-command-line"], [], True),
        ("clang", ["-g", "-m32", "-mregparm=3", "-grecord-command-line"], ["-mregparm=3"], True),
        ("arm-none-eabi-gcc", ["-g", "-mcpu=cortex-m3", "-mthumb", "-fcall-used-r4"], ["-fcall-used-r4"], True),
    ],
)
def test_options(tmp_path, compiler, flags, faults, known):
    """Options that change the ABI are errors; without a record of the options they are unknown."""
    found = made(tmp_path, compiler, *flags)
    assert [option for option, _ in abi_options(found).faults] == faults
    assert unrecorded_options(found) is not known
    reasons = [r for r in judge_file(found) if r.kind == "abi"]
    assert [r.hint for r in reasons] == [f"compile without {option}" for option in faults]
    item = ObjectFile(Path("op.o"), "elf", (found,))
    assert ("ABI options   unknown: " in as_text("op.o", item)) is not known
    assert as_json("op.o", item)["members"][0]["abi_options"] == ("verified" if known else "unknown")


def test_calling_convention_of_one_function(tmp_path):
    """The debug information of clang records an attribute for the calling convention of a function."""
    need("clang")
    source = f"__attribute__((ms_abi)) {SOURCE.splitlines()[0]}\n__attribute__((ms_abi)) {SOURCE.splitlines()[1]}\n"
    item = made(tmp_path, "clang", "-g", source=source)
    assert records_conventions(item) and not records_conventions(made(tmp_path, "clang"))
    seen = signatures(item)
    assert isinstance(seen, dict)
    declared = [DeclaredParameter("x", "const int32_t *"), DeclaredParameter("y", "int32_t *")]
    assert compare(seen["op"], "status", declared) == ["its calling convention is ms_abi, expected that of C"]


# --- The registers of arguments, as the procedure call standards of AArch32 and x86-64 list them


@pytest.mark.parametrize(
    ("machine", "float_abi", "parameters", "used"),
    [
        # A later float takes a register that the alignment of a double leaves free.
        ("arm", "hard", ("float", "double", "float", "int8_t *"), ("r0", "s0", "s2", "s3", "s1")),
        ("arm", "hard", ("double",) * 8 + ("float",), tuple(f"s{n}" for n in range(16))),
        ("arm", "soft", ("int8_t *", "double"), ("r0", "r2", "r3")),
        ("arm", "soft", ("float", "double", "int32_t"), ("r0", "r2", "r3")),
        ("arm", "soft", ("double", "int64_t", "float"), ("r0", "r1", "r2", "r3")),
        ("x86-64", None, ("int8_t *", "float", "int32_t"), ("rdi", "rsi")),
    ],
)
def test_registers_of_arguments(machine, float_abi, parameters, used):
    member = SimpleNamespace(abi=SimpleNamespace(machine=machine, float_abi=float_abi))
    assert call_registers(member, parameters, "void").used == used


def test_one_place_in_all_conventions():
    member = SimpleNamespace(abi=SimpleNamespace(machine="arm", float_abi="hard"))
    assert call_registers(member, ("int8_t *", "int32_t"), "int32_t") is None

# SPDX-License-Identifier: Apache-2.0
"""Kconfig files: conditions, definitions, choices and their values; options of floating point for boards."""

from dataclasses import replace

import projects
import pytest
from opwest.base.diagnostics import Diagnostics
from opwest.model.types.builds import Target, TargetBuild
from opwest.objects.library_symbols import is_soft_float
from opwest.objects.targets import named_targets
from opwest.zephyr.checks import _note_full_libc
from opwest.zephyr.floats import board_options, check_floats, fpu_conditions
from opwest.zephyr.kconfig import NEVER, KconfigFiles, KconfigValues, expression, holds


def true(text, *forced, **assigned):
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
def test_conditions(text, expected):
    assert holds(expression(text), frozenset(["A"])) is expected


def test_invalid_conditions_are_never_true():
    assert expression("A ?") == NEVER and expression("(A") == NEVER and expression("A)") == NEVER


def test_selections_defaults_and_implications():
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


def test_assigned_values_require_a_prompt():
    text = 'config A\n\tbool "a" if C\nconfig B\n\tbool\nconfig D\n\tbool\n\tprompt "d"\n\tdefault y\n'
    assert true(text, A=True, B=True, D=False) == set()
    assert true(text, "C", A=True, B=True) == {"A", "C", "D"}


def test_blocks():
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


def test_choices():
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


def test_contradictions_end():
    assert true("config A\n\tdef_bool !B\nconfig B\n\tdef_bool !A\n") <= {"A", "B"}


def test_included_files(tmp_path):
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


# --- Options and notes of floating point for boards: with an FPU, without one, for objects of each float ABI and for C

SHARED = {"CONFIG_FPU_SHARING": "y"}
HARD = {"CONFIG_FPU": "y", "CONFIG_FP_HARDABI": "y"} | SHARED
SOFTABI = {"CONFIG_FPU": "y", "CONFIG_FP_SOFTABI": "y"} | SHARED
CALLS = ("__aeabi_dadd", "__aeabi_fmul")


def manifest(tmp_path, dtype="float32", head=""):
    c_type = {"float32": "float", "int32": "int32_t"}[dtype]
    (tmp_path / "op.c").write_text(
        f"#include <stdint.h>\n{head}\nint32_t op(const {c_type} *x, {c_type} *y)\n"
        "{\n\ty[0] = x[0];\n\treturn 0;\n}\n"
    )
    (tmp_path / "manifest.yaml").write_text(
        "version: 1\nmodel: m\nboards: [mps2/an386, mps2/an385]\nobjects: [{files: [op.c]}]\noperators:\n"
        f"  op:\n    args:\n      - {{name: x, dtype: {dtype}, shape: [1]}}\n"
        f"      - {{name: y, dtype: {dtype}, shape: [1], direction: out}}\n"
        f"run:\n  inputs: {{x: {{dtype: {dtype}, shape: [1]}}}}\n  outputs: {{y: {{dtype: {dtype}, shape: [1]}}}}\n"
        "  steps: [{call: op, args: [x, y]}]\n"
    )
    return tmp_path / "manifest.yaml"


def built_for(model, *targets, soft_float=()):
    """Return the model with objects for named targets instead of its sources."""
    builds = []
    for name in targets:
        entry = named_targets()[name]
        kconfig = tuple(entry["kconfig"].items())
        arch, float_abi = entry.get("arch"), entry.get("float_abi")
        target = Target(name, entry["machine"], entry["bits"], "little", arch, float_abi, kconfig=kconfig)
        called = soft_float if dict(kconfig).get("CONFIG_FPU") != "y" else ("__aeabi_dadd",)
        builds.append(TargetBuild(target, (), (), (), "picolibc", libm=("expf",), soft_float=called))
    return replace(model, builds=tuple(builds))


def notes(model, board):
    faults = Diagnostics()
    check_floats([model], board, None, faults)
    return [f"{one.message} / {one.hint}" for one in faults.in_order()]


@pytest.fixture
def model(tmp_path):
    [(found, _)] = projects.check([manifest(tmp_path)], Diagnostics())
    return found


def test_options_of_boards(model, tmp_path):
    assert board_options([model], "mps2/an386") == HARD
    assert board_options([model], "qemu_cortex_a53") == {"CONFIG_FPU": "y"} | SHARED
    assert board_options([built_for(model, "cortex-m4f")], "mps2/an386") == HARD
    assert board_options([built_for(model, "cortex-m4", "cortex-m4f-softfp")], "mps2/an386") == SOFTABI
    assert board_options([built_for(model, "cortex-m4")], "mps2/an386") == {"CONFIG_FPU": "n"}
    assert board_options([built_for(model, "cortex-m55f-mve")], "mps3/corstone300/an547") == HARD
    for board in ("mps2/an385", "native_sim/native/64", "nucleo_l4r5zi"):
        assert board_options([model], board) == {}
    [(integers, _)] = projects.check([manifest(tmp_path, "int32")], Diagnostics())
    assert board_options([integers], "mps2/an386") == {} and fpu_conditions(integers) == []


def test_conditions_of_kconfig(model):
    assert fpu_conditions(model) == ["CPU_HAS_FPU && !ARCH_POSIX"]
    assert fpu_conditions(built_for(model, "cortex-m4", "x86-64", "cortex-m3")) == []
    assert fpu_conditions(built_for(model, "cortex-m4f", "cortex-m4f-softfp", "cortex-m7f")) == [
        "CPU_HAS_FPU && !ARCH_POSIX && CPU_CORTEX_M4",
        "CPU_HAS_FPU && !ARCH_POSIX && CPU_CORTEX_M7 && !CPU_HAS_FPU_DOUBLE_PRECISION",
    ]


def test_emitted_files(tmp_path):
    app = tmp_path / "app"
    projects.generate([manifest(tmp_path)], app, faults=Diagnostics())
    lines = [f"{name}={value}" for name, value in HARD.items()]
    for folder in (app, app / "tests" / "m"):
        assert [path.name for path in (folder / "boards").iterdir()] == ["mps2_an386.conf"]
        assert (folder / "boards" / "mps2_an386.conf").read_text().splitlines()[2:] == lines
    kconfig = (app / "models" / "m" / "Kconfig").read_text()
    assert "\timply FPU if CPU_HAS_FPU && !ARCH_POSIX\n\timply FPU_SHARING if CPU_HAS_FPU && !ARCH_POSIX\n" in kconfig


def test_notes(model):
    soft = built_for(model, "cortex-m3", "cortex-m4", soft_float=CALLS)
    libm = "operators of model 'm' call functions of libm: expf / None"
    assert notes(model, "mps2/an386") == []
    assert notes(model, "mps2/an385") == [
        "board 'mps2/an385' has no FPU: operators of model 'm' use software floating point / "
        "the compiler adds the functions, because they are in C"
    ]
    assert notes(soft, "mps2/an385") == [
        "board 'mps2/an385' has no FPU: operators of model 'm' use software floating point / "
        "called: __aeabi_dadd, __aeabi_fmul",
        libm,
    ]
    assert notes(soft, "mps2/an386") == [
        "objects of model 'm' do not use the FPU of board 'mps2/an386': software floating point / "
        "compile for a target with an FPU; called: __aeabi_dadd, __aeabi_fmul",
        libm,
    ]
    assert notes(built_for(model, "cortex-m4f"), "mps2/an386") == [
        "operators of model 'm' call software floating point on board 'mps2/an386': __aeabi_dadd / "
        "the FPU lacks these operations; an FPU of single precision has none for double",
        libm,
    ]
    for board in ("native_sim/native/64", "unknown"):
        assert notes(model, board) == []


def test_note_about_the_c_library(tmp_path):
    class WithPicolibc:
        def has_module(self, name):
            return name == "picolibc"

    for head, uses in (("#include <math.h>", "includes <math.h>"), ("", None)):
        [(found, _)] = projects.check([manifest(tmp_path, head=head)], Diagnostics())
        faults = Diagnostics()
        _note_full_libc([found], WithPicolibc(), faults)
        assert [one.message for one in faults.in_order()] == (
            []
            if uses is None
            else [
                f"model 'm' {uses}, which excludes Zephyr's minimal C library: builds compile the module picolibc, "
                "about 1,000 files, unless the toolchain contains picolibc"
            ]
        )


def test_functions_of_software_floating_point():
    names = "__aeabi_fadd __aeabi_d2f __aeabi_dcmplt __aeabi_cdcmpeq __aeabi_ui2d __aeabi_f2ulz __addsf3 __floatsidf"
    names += " __fixunsdfsi __truncdfsf2 __powisf2 __gnu_h2f_ieee"
    assert all(map(is_soft_float, names.split()))
    assert not any(map(is_soft_float, "__aeabi_idiv __aeabi_lmul __divdi3 __cmpdi2 expf __aeabi_memcpy".split()))


@pytest.mark.parametrize(("dtype", "expected"), [("int32", {}), ("float32", HARD)])
def test_metadata_objects_of_c_sources_need_no_fpu(dtype, expected, tmp_path):
    """The firmware compiles the operators; its options select the metadata."""
    ((model, _),) = projects.check([manifest(tmp_path, dtype)], Diagnostics())
    (sources,) = model.builds
    targets = [build.target for build in built_for(model, "cortex-m4", "cortex-m4f", "cortex-m4f-softfp").builds]
    model = replace(model, builds=tuple(replace(sources, target=target) for target in targets))
    assert board_options([model], "mps2/an386") == expected
    assert bool(fpu_conditions(model)) == bool(expected)

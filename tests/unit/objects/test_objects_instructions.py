# SPDX-License-Identifier: Apache-2.0
"""Instructions with hidden effects: in objects of each machine, and in the inline assembly of C sources."""

from pathlib import Path

import pytest
from objects_factory import compile_object
from opwest.objects.c_source import read_c_source
from opwest.objects.inspect import read_member
from opwest.objects.instructions import hidden_instructions, instruction_effects
from requirements_support import need

M4 = ("--target=thumbv7em-none-eabihf", "-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16")
A53 = ("--target=aarch64-none-elf",)
RV32 = ("--target=riscv32-none-elf", "-march=rv32imf", "-mabi=ilp32f")
X64 = ("--target=x86_64-none-elf",)
CASES = {
    "arm svc": (M4, "svc #3", "control"),
    "arm cpsid": (M4, "cpsid i", "control"),
    "arm basepri": (M4, "msr basepri, r0", "control"),
    "arm primask": (M4, "msr primask, r0", "control"),
    "arm control": (M4, "msr control, r0", "control"),
    "arm bkpt": (M4, "bkpt #0xab", "control"),
    "arm wfi": (M4, "wfi", "control"),
    "arm fpscr": (M4, "vmsr fpscr, r0", "fenv"),
    "arm flags of apsr": (M4, "msr apsr_nzcvq, r0", None),
    "arm read of fpscr": (M4, "vmrs r0, fpscr", None),
    "arm arithmetic": (M4, "smlad r0, r1, r2, r3", None),
    "arm barrier": (M4, "dsb sy", None),
    "aarch64 svc": (A53, "svc #0", "control"),
    "aarch64 fpcr": (A53, "msr fpcr, x0", "fenv"),
    "aarch64 daif": (A53, "msr daifset, #2", "control"),
    "aarch64 counter": (A53, "mrs x0, cntvct_el0", "nondeterminism"),
    "aarch64 flags": (A53, "msr nzcv, x0", None),
    "riscv ecall": (RV32, "ecall", "control"),
    "riscv mstatus": (RV32, "csrci mstatus, 8", "control"),
    "riscv frm": (RV32, "fsrm a0, a0", "fenv"),
    "riscv cycle": (RV32, "rdcycle a0", "nondeterminism"),
    "riscv read of flags": (RV32, "frflags a0", None),
    "riscv arithmetic": (RV32, "mulh a0, a0, a1", None),
    "x86 syscall": (X64, "syscall", "control"),
    "x86 int": (X64, "int $0x80", "control"),
    "x86 cli": (X64, "cli", "control"),
    "x86 rdtsc": (X64, "rdtsc", "nondeterminism"),
    "x86 rdrand": (X64, "rdrand %eax", "nondeterminism"),
    "x86 port": (X64, "inb $0x60, %al", "io"),
    "x86 mxcsr": (X64, "ldmxcsr (%rsp)", "fenv"),
    "x86 control word": (X64, "fldcw (%rsp)", "fenv"),
    "x86 vector": (X64, "paddd %xmm1, %xmm0", None),
}
"""Target, instruction, effect."""


def source(*instructions):
    lines = "\n\t".join(f'__asm__ volatile("{one.replace("%", "%%")}" ::: "memory");' for one in instructions)
    return f"int f(const int *x, int *y)\n{{\n\t{lines}\n\t*y = *x;\n\treturn 0;\n}}\n"


def effects_of_object(folder, text, flags):
    need("clang")
    path = compile_object(folder, text, "clang", (*flags, "-O1", "-ffreestanding"))
    return [one.effect for one in hidden_instructions(read_member(path.name, path.read_bytes()))]


def effects_of_source(text):
    return [one.effect for one in hidden_instructions(read_c_source(Path("f.c"), text.encode()))]


@pytest.mark.parametrize("kind", ["object", "inline assembly"])
@pytest.mark.parametrize("case", CASES)
def test_effects_of_instructions(case, kind, tmp_path):
    flags, instruction, effect = CASES[case]
    text = source(instruction)
    found = effects_of_object(tmp_path, text, flags) if kind == "object" else effects_of_source(text)
    assert found == ([effect] if effect else [])


@pytest.mark.parametrize(
    ("flags", "instructions", "wanted"),
    [
        (M4, ("vmrs r2, fpscr", "vmsr fpscr, r3", "vmsr fpscr, r2"), []),
        (M4, ("vmrs r2, fpscr", "vmsr fpscr, r3"), ["fenv"]),
        (M4, ("vmsr fpscr, r3", "vmsr fpscr, r2"), ["fenv"]),
        (X64, ("stmxcsr (%rsp)", "ldmxcsr 4(%rsp)", "ldmxcsr (%rsp)"), []),
        (X64, ("fnstcw (%rsp)", "fldcw 4(%rsp)"), ["fenv"]),
        (X64, ("fnstenv (%rsp)", "fldcw 32(%rsp)", "fldenv (%rsp)"), []),
        (X64, ("fldenv (%rsp)",), ["fenv"]),
        # fesetround() of C libraries, and llvm.set.rounding: one change of each register.
        (X64, ("fnstcw (%rsp)", "fldcw (%rsp)", "stmxcsr (%rsp)", "ldmxcsr (%rsp)"), ["fenv"]),
        (X64, ("stmxcsr (%rsp)", "ldmxcsr (%rsp)", "fnstenv (%rsp)", "fldenv (%rsp)"), ["fenv"]),
        (X64, ("stmxcsr (%rsp)", "fldcw 4(%rsp)", "fldcw (%rsp)"), ["fenv"]),
        # The result of a comparison is no copy of FPSCR.
        (M4, ("vmrs apsr_nzcv, fpscr", "vmsr fpscr, r3", "vmsr fpscr, r2"), ["fenv"]),
        (RV32, ("frflags a4", "fsflags a4"), []),
    ],
)
def test_a_restored_environment_is_no_effect(flags, instructions, wanted, tmp_path):
    assert effects_of_object(tmp_path, source(*instructions), flags) == wanted


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("int f(const double *x, int *y) { *y = (int)*x; return 0; }", ("--target=i386-none-elf", "-mno-sse")),
        ("int f(const float *x, int *y) { *y = __builtin_isless(*x, 1.0f); return 0; }", RV32),
        ("int f(const float *x, float *y) { for (int i = 0; i < 99; i++) y[i] = x[i] / 3; return 0; }", M4),
    ],
)
def test_code_of_compilers_has_no_effect(text, flags, tmp_path):
    assert effects_of_object(tmp_path, text, flags) == []


def test_data_is_not_decoded(tmp_path):
    """Constants with the bytes of instructions: a literal pool, and a table in .text."""
    text = (
        '__attribute__((section(".text.f"))) static const unsigned table[2] = {0xdf00df00u, 0xb672b672u};\n'
        "int f(const int *x, int *y) { *y = (*x * 0x4711df00) ^ (int)table[*x & 1]; return 0; }\n"
    )
    assert effects_of_object(tmp_path, text, M4) == []


@pytest.mark.parametrize(
    "text",
    [
        '#ifdef __ARM_ARCH\nint f(void)\n{\n\t__asm volatile("cpsid i");\n\treturn 0;\n}\n#endif\n',
        '/* asm("svc 0"); */\nint f(void)\n{\n\treturn 0; // asm("svc 0")\n}\n',
        'int f(void)\n{\n\tasm("" ::: "memory");\n\treturn 0;\n}\n',
        'const char *f(void);\nconst char *f(void)\n{\n\treturn "cpsid i";\n}\n',
    ],
)
def test_sources_without_certain_instructions(text):
    assert effects_of_source(text) == []


def test_several_lines_of_assembly_and_the_message():
    text = source("mrs r2, primask\\n\\tcpsid i\\n\\tvmsr fpscr, r0; wfi")
    item = read_c_source(Path("f.c"), text.encode())
    assert [(one.text, one.effect) for one in hidden_instructions(item)] == [
        ("cpsid i", "control"),
        ("vmsr fpscr, r0", "fenv"),
    ]
    control, fenv = instruction_effects(item)
    assert control.text == "executes 'cpsid i' in inline assembly, which can end, suspend or interrupt the program"
    assert control.hint == "return an error code, or set `uses: [control]`"
    assert fenv.remedy == "`uses: [fenv]` permits it"
    assert instruction_effects(item, {"control", "fenv"}) == []


def test_the_function_is_in_the_message(tmp_path):
    need("clang")
    path = compile_object(tmp_path, source("svc #3"), "clang", (*M4, "-O1"))
    (found,) = instruction_effects(read_member(path.name, path.read_bytes()))
    assert found.text == "executes 'svc #3' in function 'f', which can end, suspend or interrupt the program"

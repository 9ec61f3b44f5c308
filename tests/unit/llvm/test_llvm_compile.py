# SPDX-License-Identifier: Apache-2.0
"""Objects from IR: valid for their target, small, and linkable."""

import ctypes
import platform
import re
import struct
import subprocess

import pytest
from campaign import sized
from llvm_support import ADD, EVERYTHING, NAMES, abi, bitcode, compiled, everything, needs_llvmlite, target, tool
from opwest.objects.compat import abi_faults
from opwest.objects.elf import parse_elf
from opwest.objects.inspect import inspect_object
from opwest.objects.llvm.api import compile_ir, compile_many
from opwest.objects.llvm.facts import CompileJob, LlvmError

pytestmark = [needs_llvmlite, pytest.mark.usefixtures("one_child")]

FOREIGN = (
    'target triple = "thumbv7em-unknown-none-eabi"\n'
    "define float @op(float %a, float %b) #0 {\n  %c = fmul float %a, %b\n  %d = call float @g(float %c) #1\n"
    "  ret float %d\n}\ndeclare float @g(float) #0\n"
    'attributes #0 = { uwtable "target-cpu"="cortex-m4" "target-features"="+vfp4d16sp,+fpregs,+dsp,+thumb-mode" }\n'
    'attributes #1 = { "target-cpu"="cortex-m4" }\n'
)


@pytest.mark.parametrize("form", ["text", "bitcode"])
def test_attributes_of_another_cpu_are_dropped(tmp_path, form):
    made, member = compiled(FOREIGN if form == "text" else bitcode(FOREIGN), "cortex-m3")
    assert (member.abi.arch, member.abi.float_abi) == ("v7-M", "soft")
    assert {"__aeabi_fmul", "g"} == set(member.undefined)
    (tmp_path / "op.o").write_bytes(made)
    command = [tool("arm-none-eabi-objdump"), "-d", str(tmp_path / "op.o")]
    code = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "<op>:" in code and not re.search(r"\tv(?:mul|mov|ldr|str)", code)
    # The same module on a CPU with an FPU uses it.
    assert compiled(FOREIGN, "cortex-m4f-softfp")[1].undefined == ("g",)


def test_soft_float_of_a_cpu_with_fpu_has_no_fpu_instruction(tmp_path):
    for name in ("cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55", "cortex-m85"):
        made, _ = everything(name, optimize="speed")
        (tmp_path / "op.o").write_bytes(made)
        command = [tool("arm-none-eabi-objdump"), "-d", str(tmp_path / "op.o")]
        code = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        assert not re.search(r"\tv[a-z]", code), name


def test_hard_float_arguments_stay_in_fpu_registers(tmp_path):
    made, _ = compiled("define float @op(float %a, float %b) { %c = fmul float %a, %b ret float %c }", "cortex-m4f")
    (tmp_path / "op.o").write_bytes(made)
    command = [tool("arm-none-eabi-objdump"), "-d", str(tmp_path / "op.o")]
    code = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert re.search(r"vmul\.f32\s+s0, s0, s1", code)


def test_mve_is_used_only_if_the_target_has_it():
    levels = {"": 0, "f": 0, "f-mvei": 1, "f-mve": 2}
    names = {core + suffix: levels[suffix] for core in ("cortex-m55", "cortex-m85") for suffix in levels}
    made = compile_many([CompileJob(ADD.encode(), target(name), "speed", "op.ll") for name in names])
    for (name, level), content in zip(names.items(), made, strict=True):
        # Tag_MVE_arch is 48, followed by the value; 0 is omitted.
        data = parse_elf(content).data(parse_elf(content).find(".ARM.attributes"))
        assert (bytes([48, 1]) in data, bytes([48, 2]) in data) == (level == 1, level == 2), name


@pytest.mark.parametrize(("name", "flags"), [("rv32imc", 1), ("rv32imac", 1), ("rv32imafc", 3), ("rv64gc", 5)])
def test_riscv_flags(name, flags):
    made, member = everything(name)
    offset = 0x30 if target(name).bits == 64 else 0x24
    assert struct.unpack_from("<I", made, offset)[0] == flags
    assert member.abi.arch.startswith(f"rv{target(name).bits}i")


def test_groups_name_only_existing_sections():
    ir = "$inline = comdat any\ndefine linkonce_odr i32 @inline(ptr %f) comdat { %r = call i32 %f() ret i32 %r }"
    made, member = compiled(ir, "cortex-m3")
    elf = parse_elf(made)
    (group,) = [s for s in elf.sections if s.name == ".group"]
    numbers = struct.unpack(f"<{group.size // 4}I", elf.data(group))[1:]
    assert [elf.sections[n].name for n in numbers] == [".text.inline"]
    assert member.defined["inline"].binding == "weak"


def test_inline_functions_stay_in_the_object():
    _, member = compiled("define linkonce_odr i32 @inline() { ret i32 4 }", "cortex-m3")
    assert member.defined["inline"].binding == "weak"


def test_size_does_not_unroll_and_speed_does():
    small, large = (compiled(ADD, "cortex-m4f", optimize=o)[1].sizes.code for o in ("size", "speed"))
    assert small < 64 < large


def test_optimization_levels_in_the_ir_are_ignored():
    ir = ADD.replace("%out) {", "%out) noinline optnone {")
    assert compiled(ir, "cortex-m4f")[1].sizes == compiled(ADD, "cortex-m4f")[1].sizes
    ir = ADD.replace("%out) {", "%out) minsize optsize {")
    assert (
        compiled(ir, "cortex-m4f", optimize="speed")[1].sizes == compiled(ADD, "cortex-m4f", optimize="speed")[1].sizes
    )


def test_objects_have_no_unwind_tables():
    ir = "declare void @g()\ndefine void @op() uwtable { call void @g() ret void }"
    made, _ = compiled(ir, "cortex-m3")
    assert not any(s.name.startswith(".ARM.exidx") for s in parse_elf(made).sections)
    made, _ = compiled(ir, "rv32imac")
    assert not parse_elf(made).find(".eh_frame")


def test_same_input_gives_the_same_object_and_no_path():
    ir = 'source_filename = "/home/me/secret/op.c"\n' + EVERYTHING
    first, _ = compiled(ir, "cortex-m3")
    assert first == compiled(ir, "cortex-m3")[0] == compiled(bitcode(ir), "cortex-m3")[0]
    assert b"secret" not in first


def test_sections_given_in_the_ir_stay():
    ir = '@a = constant i32 1, section ".rodata.fast"\ndefine void @op() section ".ramfunc" { ret void }'
    names = {s.name for s in parse_elf(compiled(ir, "cortex-m3")[0]).sections}
    assert {".rodata.fast", ".ramfunc"} <= names and ".text.op" not in names


SWITCH = "define i32 @{name}(i32 %a, ptr %f) {{\n  switch i32 %a, label %d [{cases}]\nd:\n  ret i32 -1\n{blocks}}}\n"


def switch(name):
    cases = " ".join(f"i32 {i}, label %c{i}" for i in range(12))
    blocks = "".join(f"c{i}:\n  %v{i} = call i32 %f(i32 {i * i + 3})\n  ret i32 %v{i}\n" for i in range(12))
    return SWITCH.format(name=name, cases=cases, blocks=blocks)


@pytest.mark.parametrize("name", ["cortex-m3", "x86-64", "rv32imac", "cortex-a53"])
def test_jump_tables_do_not_tie_functions_together(name):
    made, _ = compiled(switch("one") + switch("two"), name)
    sections = {s.name: s.size for s in parse_elf(made).sections}
    assert not sections.get(".rodata")


@pytest.mark.parametrize("ir", [
    'define void @op() {\n  call void asm sideeffect "nop", ""()\n  ret void\n}\n',
    'module asm ".globl x"\n' + ADD,
])  # fmt: skip
def test_assembly_is_assembled_only_for_this_computer(ir):
    with pytest.raises(LlvmError, match=r"llvmlite cannot assemble the inline or module assembly .* for 'cortex-m3'"):
        compiled(ir, "cortex-m3")
    if platform.machine() in ("x86_64", "AMD64"):
        assert compiled(ir, "x86-64")[1].defined


def test_empty_assembly_is_only_a_barrier():
    assert compiled('define void @op() { call void asm sideeffect "", "~{memory}"() ret void }', "cortex-m3")[1].defined


def test_ir_for_another_abi_is_rejected():
    flags = '!llvm.module.flags = !{!0}\n!0 = !{i32 1, !"target-abi", !"ilp32f"}\n'
    with pytest.raises(LlvmError, match="the IR is for the ABI ilp32f"):
        compiled(ADD + flags, "rv32imac")
    assert compiled(ADD + flags, "rv32imafc")[1].defined


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("rv32imac", {"abi": "nonsense"}, "the ABI of target 'rv32imac' is 'nonsense'"),
        ("cortex-m3", {"triple": "thumbv7m-none-eabi"}, "four parts"),
        ("cortex-m3", {"triple": "nonsense-unknown-none-elf"}, "LLVM does not support 'nonsense"),
        ("cortex-m3", {"triple": "thumbv7m-unknown-none-eabihf"}, "the environment eabihf for hard float"),
        ("cortex-m3", {"cpu": "cortex-m99"}, "'cortex-m99' is not a recognized processor"),
        ("cortex-m3", {"cpu": "x y"}, "one word"),
        ("cortex-m3", {"features": "+nonsense"}, "'\\+nonsense' is not a recognized feature"),
        ("cortex-m3", {"features": "dsp"}, "such as \\+dsp"),
    ],
)
def test_targets_unknown_to_llvm(name, changes, words):
    with pytest.raises(LlvmError) as caught:
        compile_ir(ADD.encode(), target(name, **changes))
    assert re.search(words, f"{caught.value.message} {caught.value.expected}")


def test_unused_functions_are_dropped_by_the_linker_without_a_warning(tmp_path):
    # As clang writes it: GNU ld warns about enums of another size.
    flags = (
        '!llvm.module.flags = !{!0, !1}\n!0 = !{i32 1, !"wchar_size", i32 4}\n!1 = !{i32 1, !"min_enum_size", i32 4}\n'
    )
    made, _ = compiled(EVERYTHING + flags, "cortex-m3")
    (tmp_path / "op.o").write_bytes(made)
    (tmp_path / "main.c").write_text("void add(float *, float *, float *);\nvoid _start(void) { add(0, 0, 0); }\n")
    command = [
        tool("arm-none-eabi-gcc"), "-mcpu=cortex-m3", "-mthumb", "-Os", "-nostdlib", "-Wl,--gc-sections",
        "-Wl,--fatal-warnings", "main.c", "op.o", "-lgcc", "-o", "out.elf",
    ]  # fmt: skip
    subprocess.run(command, check=True, cwd=tmp_path)
    names = subprocess.run(["arm-none-eabi-nm", "out.elf"], check=True, cwd=tmp_path, capture_output=True, text=True)
    assert " T add\n" in names.stdout
    assert not re.search(r" (?:scale|wide|calls|table|names|counter|zeroed)\n", names.stdout)
    sections = subprocess.run(
        ["arm-none-eabi-readelf", "-SW", "out.elf"], check=True, cwd=tmp_path, capture_output=True, text=True
    )
    assert ".ARM.exidx" not in sections.stdout


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("rv32imac", ["-march=rv32imac", "-mabi=ilp32"]),
        ("rv32imafc", ["-march=rv32imafc", "-mabi=ilp32f"]),
        ("rv64gc", ["-march=rv64gc", "-mabi=lp64d", "-mcmodel=medany"]),
    ],
)
def test_riscv_objects_link_with_those_of_gcc(tmp_path, name, flags):
    made, _ = everything(name)
    (tmp_path / "op.o").write_bytes(made)
    (tmp_path / "main.c").write_text(
        "int calls(int); float scale(float, double); double wide(double, long long);\n"
        "float expf(float x) { return x; }\nint other(void *p, ...) { return p != 0; }\n"
        "void _start(void) { calls((int)(scale(1, 2) + wide(3, 4))); }\n"
    )
    command = [
        tool("riscv64-unknown-elf-gcc"), *flags, "-ffreestanding", "-nostdlib", "-Wl,--fatal-warnings",
        "-Wl,-Ttext=0x80000000", "-Wl,--no-warn-rwx-segments", "main.c", "op.o", "-lgcc", "-o", "out.elf",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.x86_64
@pytest.mark.parametrize("optimize", ["size", "speed"])
def test_compiled_code_computes_the_sum(tmp_path, optimize):
    made, _ = compiled(ADD.replace("@add", "@opwest_add"), "x86-64", optimize=optimize)
    (tmp_path / "op.o").write_bytes(made)
    subprocess.run([tool("gcc"), "-shared", "op.o", "-o", "op.so"], check=True, cwd=tmp_path)
    array = ctypes.c_float * 64
    a, b, out = array(*range(64)), array(*(2 * i for i in range(64))), array()
    ctypes.CDLL(str(tmp_path / "op.so")).opwest_add(a, b, out)
    assert list(out) == [4.5 * i for i in range(64)]


# --- Objects compiled from IR for every target


@pytest.mark.parametrize("optimize", ["size", "speed"])
@pytest.mark.parametrize("name", NAMES)
def test_every_target_passes_our_own_check(tmp_path, name, optimize):
    made, _ = everything(name, optimize=optimize)
    path = tmp_path / "op.o"
    path.write_bytes(made)
    (member,) = inspect_object(path).members
    assert abi_faults(member.abi, abi(name)) == []
    assert member.faults == ()
    assert member.abi.float_abi == abi(name).float_abi
    assert set(member.defined) == {"add", "scale", "wide", "calls", "table", "names", "zeroed"}
    assert {"expf", "other"} <= set(member.undefined)
    assert not any(s.startswith(("__aeabi_unwind", "_GLOBAL_OFFSET", "__gxx")) for s in member.undefined)
    assert sorted(member.stateful_symbols) == ["counter", "zeroed"]


@pytest.mark.parametrize("name", sized(NAMES[::4], NAMES))
def test_table_has_the_data_layout_of_llvm(name):
    from opwest.objects.llvm.worker import _machine

    with _machine(target(name), 2) as machine:
        assert str(machine.target_data) == target(name).data_layout


@pytest.mark.parametrize("name", NAMES)
def test_sections_of_each_function_and_variable(name):
    made, _ = everything(name)
    sections = {s.name: s.size for s in parse_elf(made).sections}
    relocated = ".data.rel.ro.names" if name in ("x86-64", "aarch64-host") else ".rodata.names"
    assert {".text.add", ".text.calls", ".rodata.table", ".data.counter", ".bss.zeroed", relocated} <= sections.keys()
    assert all(sections.get(shared, 0) == 0 for shared in (".text", ".data", ".rodata", ".bss", ".sdata"))
    assert not any(s.startswith((".eh_frame", ".ARM.exidx", ".ARM.extab")) for s in sections)
    assert (".note.GNU-stack" in sections) == ("-linux-" in target(name).triple)

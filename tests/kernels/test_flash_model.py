# SPDX-License-Identifier: Apache-2.0
"""The model of cycles and of a flash in QEMU: instructions whose cycles are computed by hand."""

import pytest
from opwest.objects.flash import Flash
from opwest.tuning import measure
from opwest.tuning.machines import machines
from requirements_support import need

need("arm-none-eabi-gcc", "qemu-system-arm", "cc")

IMAGE = """
.syntax unified
.thumb
.section .vectors, "a"
.word 0x20010000, reset, fault, fault, fault, fault, fault
.text
.thumb_func
fault: b fault
.balign 64
content: .fill 8, 4, 1
content_end:
.balign 64
.thumb_func
reset: movs r0, #2
adr r4, content
movs r3, #7
.fill 3, 2, 0xbf00
count_from: nop
again: {code}
count_to: nop
movs r0, #0x18
ldr r1, =0x20026
bkpt 0xab
"""
LINES_A_B = ".fill 8, 2, 0xbf00\n.fill 7, 2, 0xbf00\nsubs r0, #1\nbne again"
"""Two whole lines of 16 bytes, and the branch at the start of the third one; twice. A taken branch takes 3 cycles."""
LOADS = "ldr r2, [r4]\nldr r2, [r4, #4]\nldr r2, [r4, #16]\nudiv r3, r3, r3"
"""Words of two lines. Loads after the first one are pipelined: 2, 1 and 1 cycles. A division takes 7 cycles."""


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """Return instructions, cycles, cycles with a flash, and the stalls for code and data in a run of code."""
    folder = tmp_path_factory.mktemp("flash")
    machine, plugin = machines()["cortex-m4"], measure.built_plugin(folder)

    def run(code, flash):
        source, image = folder / "code.S", folder / "code.elf"
        source.write_text(IMAGE.format(code=code))
        script = measure.HERE / "image.ld"
        starts = [f"-Wl,--defsym={name}={start:#x}" for name, start in machine.memories]
        link = ["-nostdlib", "-Wl,--no-warn-rwx-segments", f"-Wl,-T,{script}", *starts]
        measure.execute([*machine.compiler, *link, str(source), "-o", str(image)])
        _, [row] = measure.emulated(image, machine, plugin, folder / "counts.txt", flash=flash)
        return row[0], row[5], row[7], row[8], row[9]

    return run


@pytest.mark.parametrize(
    ("flash", "stalls"),
    [
        (Flash(0, 16, 0), 0),
        # Every entry of a line waits, 6 of them: without a cache, and with one for two of the three lines.
        (Flash(5, 16, 0, 0, False), 30),
        (Flash(5, 16, 32, 0, False), 30),
        (Flash(5, 16, 48, 0, False), 15),
        # A line takes 8 cycles, and a read 6: only the first line waits. With 10 cycles for a read: 9 + 3 + 2.
        (Flash(5, 16, 64), 5),
        (Flash(9, 16, 64), 14),
        # Lines of 8 bytes, 4 instructions each: 5 lines.
        (Flash(5, 8, 64, 0, False), 25),
    ],
)
def test_code(counted, flash, stalls):
    assert counted(LINES_A_B, flash) == (34, 36, 36 + stalls, stalls, 0)


@pytest.mark.parametrize(
    ("flash", "code", "data"),
    [
        (Flash(5, 16, 64, 0, False), 5, 15),
        (Flash(5, 16, 64, 16, False), 5, 10),
        # The prefetch of the next line of code is in the way of the first load, which waits for 10 cycles.
        (Flash(5, 16, 64, 16, True), 5, 15),
        (Flash(5, 32, 64, 32, False), 5, 5),
    ],
)
def test_data(counted, flash, code, data):
    assert counted(LOADS, flash) == (4, 11, 11 + code + data, code, data)


ENABLED = "ldr r5, =0xe000ed88\nldr r6, [r5]\norr r6, r6, #0xf00000\nstr r6, [r5]\ndsb\nisb\nnop\n"
"""The FPU."""


@pytest.mark.parametrize(
    ("code", "cycles"),
    [
        ("vldr s0, [r4]\nvldr s1, [r4, #4]", 4),  # not pipelined
        ("vldm r4, {s0-s3}", 5),
        ("vpush {s0-s3}\nvpop {s0-s3}", 10),
        ("vstr s0, [sp, #-4]", 2),
        ("vstr d0, [sp, #-8]\nvldr d0, [r4]", 6),
        ("vmul.f32 s0, s1, s2\nvmul.f32 s3, s1, s2\nvadd.f32 s4, s4, s0\nvadd.f32 s5, s5, s3", 4),
        # The result of the instruction before.
        ("vmul.f32 s0, s1, s2\nvadd.f32 s4, s4, s0", 3),
        ("vadd.f32 s0, s1, s2\nvmov r1, s0", 3),
        ("vsub.f32 s3, s1, s2\nvstm r5, {s0-s3}", 7),
        ("vadd.f32 s0, s1, s2\nvcmp.f32 s0, #0\nvmrs APSR_nzcv, FPSCR", 4),
        ("vmul.f32 s0, s1, s2\nvmla.f32 s0, s1, s2", 4),  # as addend
        ("vmul.f32 s1, s0, s2\nvmla.f32 s0, s1, s2", 5),
        ("vfma.f32 s0, s1, s2\nvnmls.f32 s3, s1, s2", 6),
        ("vdiv.f32 s0, s1, s2\nvsqrt.f32 s3, s1", 28),
        ("vmov r1, r2, s0, s1\nvmov s0, r1\nvmov.f32 s2, #1.0\nvmov.f32 s3, s2\nvabs.f32 s4, s3", 6),
        ("vcvt.f32.s32 s0, s1\nvneg.f32 s2, s0", 3),
    ],
)
def test_cycles_of_the_fpu(counted, code, cycles):
    given = f"ldr r5, =0x20008000\n{code}"
    before = counted(f"{ENABLED}ldr r5, =0x20008000\n", Flash(0, 16, 0))[1]
    assert counted(ENABLED + given, Flash(0, 16, 0))[1] - before == cycles

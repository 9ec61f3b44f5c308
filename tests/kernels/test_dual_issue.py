# SPDX-License-Identifier: Apache-2.0
"""The model of the Cortex-M7, compared with LLVM's, and the order of instructions for it."""

import random
import re
import subprocess

import pytest
from campaign import sized
from opwest.compiler.kernels.dsp.tiles import Tile
from opwest.compiler.kernels.pairing import can_pair, paired
from opwest.compiler.kernels.scaling import Epilogue
from opwest.objects.targets import PAIRED, processors
from opwest.runs.plugin import HERE
from opwest.tuning.machines import machines
from requirements_support import need

TILES = {
    "halves": Tile(4, 2, 2, 8, True, Epilogue(True, False, -128, 127), None),
    "bytes": Tile(2, 4, 4, 8, False, Epilogue(True, False, -128, 127), None),
}
STEPS = 8
PRODUCTS = 8 * STEPS
"""The multiplications of a block of these tiles: the least cycles."""
BLOCKS = {
    "a chain of products": (["smlad r0, r1, r2, r0"] * 4, 4, 4),
    "products and their operands": (["smulbb r0, r1, r2", "add r3, r0, #1", "mul r4, r3, r3"], 4, 4),
    "two ALUs": (["add r0, r1, r2", "add r3, r4, r5", "sub r6, r7, r8", "eor r9, r10, r11"], 2, 2),
    "one shifter": (["add r0, r1, r2, lsl #2", "add r3, r4, r5, lsl #2"], 2, 2),
    "extensions are first": (["add r0, r1, r2", "sxtb16 r3, r4", "add r5, r6, r7"], 2, 2),
    "an address": (["add r0, r1, #4", "ldr r2, [r0]", "add r3, r2, #1"], 3, 3),
    "stores": (["add r0, r1, r2", "str r0, [r3]", "add r4, r5, r6", "str r4, [r3, #4]"], 2, 2),
    "saturation": (["ssat r0, #8, r1", "add r2, r0, #1"], 3, 3),
    "float products": (["vmul.f32 s0, s1, s2", "vadd.f32 s3, s0, s4"], 4, 4),
    "float additions to products": (["vfma.f32 s0, s1, s2", "vfma.f32 s0, s3, s4", "vfma.f32 s0, s5, s6"], 9, 9),
    # LLVM's words of 64 bits occupy both ports for the moved address, too; its divisions end a cycle earlier.
    "two words alone": (["ldrd r0, r1, [r12], #8", "add r2, r3, r4", "ldrd r5, r6, [r12], #8"], 3, 4),
    "divisions": (["sdiv r0, r1, r2", "add r3, r4, r5"], 8, 7),
}
"""Instructions that are repeated, their cycles by the rules of m7.h, and those of LLVM's analyser."""
MAIN = """
#include <stdio.h>
#include "m7.h"
int main(void)
{
	static uint8_t bytes[4096];
	static struct m7_pipeline pipeline;
	const size_t size = fread(bytes, 1, sizeof(bytes), stdin);
	m7_clear(&pipeline);
	for (int turn = 0; turn < 100; turn++) {
		for (size_t at = 0; at < size;) {
			const size_t length = bytes[at + 1] >= 0xe8 ? 4 : 2;
			const struct m7_instruction one = m7_read(bytes + at, length);
			m7_issue(&pipeline, &one, 0);
			at += length;
		}
	}
	printf("%llu", (unsigned long long)pipeline.cycle);
	return 0;
}
"""


@pytest.fixture(scope="module")
def cycles(tmp_path_factory):
    """Return the cycles of 100 turns of a block: by the model, and by LLVM's analyser."""
    need("cc", "arm-none-eabi-gcc", "llvm-mca-19")
    folder = tmp_path_factory.mktemp("m7")
    (folder / "main.c").write_text(MAIN)
    program = folder / "main"
    subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", f"-I{HERE}", folder / "main.c", "-o", program], check=True)
    source, made, code = folder / "block.s", folder / "block.o", folder / "block.bin"
    analyser = ["llvm-mca-19", "-mtriple=thumbv7em-none-eabihf", "-mcpu=cortex-m7", "-iterations=100", source]

    def run(lines):
        separate = "; ".join(lines).split("; ")
        source.write_text("\n".join([".syntax unified", ".thumb", *separate, ""]))
        words = ["arm-none-eabi-as", "-mcpu=cortex-m7", "-mfpu=fpv5-sp-d16", source, "-o", made]
        subprocess.run(words, check=True)
        subprocess.run(["arm-none-eabi-objcopy", "-O", "binary", made, code], check=True)
        own = subprocess.run([program], input=code.read_bytes(), capture_output=True, check=True).stdout
        other = subprocess.run(analyser, capture_output=True, text=True, check=True).stdout
        return int(own), int(re.search(r"Total Cycles:\s+(\d+)", other)[1])

    return run


def of_step(name):
    return list(TILES[name]._step())


@pytest.mark.parametrize("name", BLOCKS)
def test_cycles(cycles, name):
    lines, own, other = BLOCKS[name]
    found = cycles(lines)
    assert abs(found[0] - 100 * own) <= 3 and abs(found[1] - 100 * other) <= 5, found


@pytest.mark.parametrize("name", TILES)
def test_blocks_of_tiles(cycles, name):
    """LLVM's analyser, which ends instructions in order, too, has a tenth more cycles for the ordered blocks."""
    plain, ordered = of_step(name) * STEPS, paired(of_step(name) * STEPS)
    assert all(abs(found - 100 * (PRODUCTS + 3 * STEPS)) <= 3 for found in cycles(plain))
    own, other = cycles(ordered)
    assert own <= 100 * (PRODUCTS + 3) and own <= other <= 1.13 * own


def run(lines):
    """Return the contents of registers after instructions, as expressions of those before."""
    state = {}

    def value(name):
        return state.get(name, name)

    for line in "; ".join(lines).split("; "):
        name, _, operands = line.partition(" ")
        words = re.findall(r"[a-z]+\d*|#-?\d+|ror", operands)
        if name in ("ldr", "ldrd", "ldm"):
            base = words[0] if name == "ldm" else words[operands[: operands.index("[")].count(",")]
            to = [word for word in words if word != base and not word.startswith("#")]
            numbers = [int(word[1:]) for word in words if word.startswith("#")]
            address, offset = value(base) if isinstance(value(base), tuple) else (base, 0)
            is_offset = "#" in operands.partition("]")[0]
            start = offset + (numbers[0] if is_offset else 0)
            state.update({one: ("word", address, start + 4 * place) for place, one in enumerate(to)})
            moved = 4 * len(to) if name == "ldm" else 0 if is_offset or not numbers else numbers[0]
            state[base] = (address, offset + moved)
        elif name == "add":
            address, offset = value(words[1]) if isinstance(value(words[1]), tuple) else (words[1], 0)
            state[words[0]] = (address, offset + int(words[2][1:]))
        elif name == "smlald":
            result = (name, *map(value, words))
            state[words[0]], state[words[1]] = (*result, "low"), (*result, "high")
        else:
            state[words[0]] = (name, *(value(word) for word in words[1:]))
    return {name: found for name, found in state.items() if found != (name, 0)}


def drawn(number):
    """Return random instructions of those that kernels have."""
    choose = random.Random(number).choice
    registers = [f"r{place}" for place in range(2, 13)]
    made = []
    for _ in range(40):
        one, two, three = (choose(registers) for _ in range(3))
        low = choose(range(2, 10, 2))
        made.append(
            choose(
                [
                    f"ldr {one}, [r{choose((0, 1))}], #4",
                    f"ldr {one}, [r0, #{choose((0, 8))}]",
                    f"ldrd r{low}, r{low + 1}, [r1], #8",
                    f"ldm r{choose((0, 1))}!, {{r10, r11, r12, lr}}",
                    f"smlad {one}, {two}, {three}, {one}",
                    f"smlald r{low}, r{low + 1}, {two}, {three}",
                    f"sxtb16 {one}, {two}",
                    f"sxtb16 {one}, {two}, ror #8",
                ]
            )
        )
    return made


def test_every_order_has_the_same_results():
    for number in range(sized(200, 5000)):
        lines = drawn(number)
        ordered = paired(lines)
        assert run(ordered) == run(lines), lines
        assert not any(name in line for line in ordered for name in ("ldrd", "ldm"))
    assert not can_pair(["ldr r0, [r1]", "bne 1b"])


def test_tiles_have_both_orders():
    """Only the C of a Cortex-M7 has the ordered instructions; in QEMU, its image is compiled with Zephyr's macro."""
    assert f"-D{PAIRED}" in machines()["cortex-m7"].compiler
    assert f"-D{PAIRED}" not in machines()["cortex-m4"].compiler
    assert processors()["cortex-m7"].symbol == PAIRED.removeprefix("CONFIG_")
    text = TILES["bytes"].definition()
    own, _, other = text.partition("#else\n")
    assert own.count("ldrd r10, r11, [r1], #8") == 0 < other.count("ldrd r10, r11, [r1], #8")
    assert text.count("#endif") == 1 == text.count(f"#if defined({PAIRED})")

# SPDX-License-Identifier: Apache-2.0
"""Pools bound to memory regions of boards: their addresses in the image, and errors for wrong bindings."""

import pytest
from campaign import sized
from cover import configured

pytestmark = pytest.mark.zephyr
AN547, AN385, NATIVE = "mps3/corstone300/an547", "mps2/an385", "native_sim/native/64"

MANIFEST = """version: 1
model: regions
boards: [native_sim/native/64, mps2/an385, mps3/corstone300/an547]
objects: [{files: [steps.c]}]
memory:
  near:
    size: 4KiB
    reachable_by: [cpu]
    boards: {mps3/corstone300/an547: {nodelabel: NEAR}, mps2/an385: {nodelabel: fast}}
  far:
    align: 32
    reachable_by: [cpu, dma]
    boards: {mps3/corstone300/an547: {nodelabel: isram}}
devices:
  dma: {devicetree: {nodelabel: uart0}, driver: none}
operators:
  twice:
    args: &args
      - {name: x, dtype: int32, shape: [256]}
      - {name: factor, dtype: int32, shape: [256]}
      - {name: y, dtype: int32, shape: [256], direction: out}
  moved: {symbol: moved, device: {}, args: *args}
  tally: {args: [{name: count, dtype: int32, shape: [1], direction: inout}]}
constants:
  pinned: {file: pinned.bin, dtype: int32, shape: [256], pool: far}
  flash: {file: pinned.bin, dtype: int32, shape: [256]}
run:
  inputs: {x: {dtype: int32, shape: [256]}}
  outputs: {y: {dtype: int32, shape: [256], external: true}, z: {dtype: int32, shape: [256]}}
  state: {count: {dtype: int32, shape: [1], initial: 5, pool: near}}
  steps:
    - {call: tally, args: [count]}
    - {call: twice, args: [x, flash, a]}
    - {call: twice, args: [a, flash, b]}
    - {call: twice, args: [b, flash, c]}
    - {call: moved, device: dma, args: [c, pinned, y]}
    - {call: moved, device: dma, args: [c, pinned, z]}
application:
  sources: [main.c]
  kconfig: {CONFIG_SERIAL: y}  # the device is a UART: native_sim has no driver for it otherwise
  overlays: {mps2/an385: split.overlay}
"""

SPLIT = """/* sram0 gives its last megabyte to a region of its own. */
&sram0 {
	reg = <0x20000000 0x300000>;
};

/ {
	fast: memory@20300000 {
		compatible = "zephyr,memory-region", "mmio-sram";
		reg = <0x20300000 0x100000>;
		zephyr,memory-region = "FAST";
	};
};
"""

STEPS = """#include <stdint.h>
struct device;
int32_t twice(const int32_t *x, const int32_t *factor, int32_t *y)
{
	for (int i = 0; i < 256; i++) {
		y[i] = x[i] * factor[i];
	}
	return 0;
}
int32_t tally(int32_t *count)
{
	count[0]++;
	return 0;
}
int32_t moved(const int32_t *x, const int32_t *factor, int32_t *y, const struct device *dev)
{
	return dev == 0 ? 1 : twice(x, factor, y);
}
"""

MAIN = """#include <stdio.h>
#include <string.h>
#include <regions.h>
#include <regions_devicetree.h>

REGIONS_WORKSPACE_DEFINE(places);
static const struct regions_devices devices = REGIONS_DEVICES_DT_INIT;
static int32_t x[256], y[256];
OPWEST_ALIGNED(32) static int32_t reachable[256] REGIONS_POOL_FAR_PLACE;

static int once(int32_t *result)
{
	return regions_run(&(struct regions_inputs){x}, &(struct regions_outputs){result}, &places, &devices);
}

int main(void)
{
	static uint8_t saved[REGIONS_STATE_SIZE];
	int32_t count;

	for (int i = 0; i < 256; i++) {
		x[i] = i;
	}
	printf("open %d\\n", regions_open(&places, &devices));
	printf("far away: %d\\n", once(y));
	printf("run %d\\n", once(reachable));
	printf("y %d %d z %d\\n", (int)reachable[3], (int)reachable[255], (int)places.output.z[255]);
	printf("save %d\\n", regions_save(&places, saved, sizeof(saved)));
	memcpy(&count, &saved[sizeof(saved) - sizeof(count)], sizeof(count));
	printf("count %d\\n", (int)count);
	printf("close %d\\nend\\n", regions_close(&places, &devices));
	return 0;
}
"""


WRONG_BINDINGS = [
    ("itcm", "pool near: nodelabel itcm of board mps3/corstone300/an547 is its flash: read only"),
    ("no_such", "pool near: board mps3/corstone300/an547 has no enabled node nodelabel no_such"),
    ("uart1", "pool near: nodelabel uart1 of board mps3/corstone300/an547 is not a zephyr,memory-region"),
]


def application(opwest, folder, near="sram"):
    (folder / "steps.c").write_text(STEPS)
    (folder / "main.c").write_text(MAIN)
    (folder / "split.overlay").write_text(SPLIT)
    (folder / "pinned.bin").write_bytes((2).to_bytes(4, "little") * 256)
    (folder / "manifest.yaml").write_text(MANIFEST.replace("NEAR", near))
    opwest("generate", folder / "manifest.yaml", "-o", folder / "app")
    return folder / "app"


def within(place, start, size):
    return start <= place[0] and place[0] + place[1] <= start + size


def answers(console, *, runs=2):
    assert f"count {5 + runs}" in console, "the state, from its first content on"
    assert "open 0" in console and "run 0" in console and "close 0" in console
    assert f"y {3 * 16} {255 * 16} z {255 * 16}" in console


@configured(board=AN547)
def test_two_regions_of_the_an547(workspace, opwest, tmp_path):
    """In the same build, a pool is then bound to the chosen SRAM, which is ordinary memory, and to wrong nodes."""
    built = workspace.build(application(opwest, tmp_path), AN547)
    found = built.symbols
    assert within(found["places_near"], 0x11000000, 2 << 20), found["places_near"]
    assert within(found["places_far"], 0x31000000, 4 << 20), found["places_far"]
    assert within(found["reachable"], 0x31000000, 4 << 20), found["reachable"]
    console = built.run("^end")
    answers(console, runs=1)
    assert "far away: -14" in console  # y[] is in DTCM, where the device does not reach it: -EFAULT

    application(opwest, tmp_path, near="dtcm")
    built.rebuilt()
    assert within(built.symbols["places_near"], 0x30000000, 512 << 10)
    answers(built.run("^end"), runs=1)

    for near, message in sized(WRONG_BINDINGS[:1], WRONG_BINDINGS):
        application(opwest, tmp_path, near=near)
        code, log = built.again()
        assert code != 0
        assert f"manifest.yaml:9: {message}" in " ".join(log.split())


@configured(board=AN385)
def test_split_sram_on_the_an385(workspace, opwest, tmp_path):
    app = application(opwest, tmp_path)
    built = workspace.build(app, AN385)
    found = built.symbols
    assert within(found["places_near"], 0x20300000, 1 << 20), found["places_near"]
    assert within(found["places_far"], 0x20000000, 3 << 20), found["places_far"]
    console = built.run("^end")
    answers(console)
    assert "far away: 0" in console  # ordinary memory on this board

    overlay = app / "boards" / "mps2_an385.overlay"
    overlay.write_text(overlay.read_text().replace("0x20300000 0x100000", "0x20300000 0x400"))
    code, log = built.again()
    assert code != 0
    said = "the region nodelabel fast of board mps2/an385 is smaller than its plan: 2056 bytes"
    assert f"manifest.yaml:9: pool near: {said}" in " ".join(log.split())


@configured(board=NATIVE)
def test_unlisted_boards_use_ordinary_memory(workspace, opwest, tmp_path):
    answers(workspace.build(application(opwest, tmp_path), NATIVE).run("^end"))

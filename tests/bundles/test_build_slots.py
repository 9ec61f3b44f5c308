# SPDX-License-Identifier: Apache-2.0
"""Slots: addresses, and partitions of a devicetree."""

import pytest
from opwest.base.diagnostics import Diagnostics
from opwest.bundles.slots import Slot, TreeError, partition, read_slot

TREE = """/dts-v1/;
/* a comment with { and ; */
/ {
	#address-cells = < 0x1 >; #size-cells = < 0x1 >;
	chosen { zephyr,flash = &flash0; zephyr,code-partition = &slot0_partition; };
	soc {
		#address-cells = < 0x1 >; #size-cells = < 0x1 >; ranges;
		/* node '/soc/flash-controller@40022000' */
		flash: flash-controller@40022000 {
			compatible = "st,stm32-flash-controller", "st,stm32l4-flash-controller";
			reg = < 0x40022000 0x400 >;
			#address-cells = < 0x1 >; #size-cells = < 0x1 >;
			flash0: flash@8000000 {
				compatible = "soc-nv-flash"; reg = < 0x8000000 0x100000 >;
				partitions {
					compatible = "fixed-partitions"; #address-cells = < 0x1 >; #size-cells = < 0x1 >;
					boot_partition: partition@0 { label = "mcuboot"; reg = < 0x0 0xc000 >; };
					other: slot0_partition: partition@c000 {
						label = "image-0"; /* in a.dtsi:3 */ reg = < 0xc000 0x40000 >;
					};
					models: partition@80000 {
						compatible = "fixed-subpartitions"; label = "models";
						reg = < 0x80000 0x20000 >;
						#address-cells = < 0x1 >; #size-cells = < 0x1 >;
						ranges = < 0x0 0x80000 0x20000 >;
						model_a: partition@0 { label = "model-a"; reg = < 0x0 0x10000 >; };
						model_b: partition@10000 { reg = < 0x10000 0x10000 >; };
					};
					plain_models: partition@a0000 {
						compatible = "fixed-subpartitions"; reg = < 0xa0000 0x20000 >;
						#address-cells = < 0x1 >; #size-cells = < 0x1 >;
						model_c: partition@8000 { reg = < 0x8000 0x8000 >; };
					};
				};
			};
		};
		far: bus@50000000 {
			#address-cells = < 0x2 >; #size-cells = < 0x1 >;
			ranges = < 0x1 0x0 0x50000000 0x1000000 >;
			flash1: flash@100000000 {
				compatible = "soc-nv-flash"; reg = < 0x1 0x0 0x100000 >;
				#address-cells = < 0x1 >; #size-cells = < 0x1 >;
				ranges = < 0x0 0x1 0x0 0x100000 >;
				partitions {
					compatible = "fixed-partitions"; ranges;
					#address-cells = < 0x1 >; #size-cells = < 0x1 >;
					mapped: partition@4000 { compatible = "zephyr,mapped-partition"; reg = < 0x4000 0x2000 >; };
					outside: partition@200000 { compatible = "zephyr,mapped-partition"; reg = < 0x200000 0x2000 >; };
				};
			};
		};
		spi@40000000 {
			#address-cells = < 0x1 >; #size-cells = < 0x0 >;
			reg = < 0x40000000 0x1000 >;
			nor: flash@0 {
				compatible = "jedec,spi-nor"; reg = < 0x0 >; jedec-id = [ ef 40 18 ];
				partitions {
					compatible = "fixed-partitions"; #address-cells = < 0x1 >; #size-cells = < 0x1 >;
					external: partition@0 { reg = < 0x0 0x100000 >; };
				};
			};
		};
	};
	sim_flash_controller: sim_flash_controller {
		compatible = "zephyr,sim-flash"; #address-cells = < 0x1 >; #size-cells = < 0x1 >;
		flash_sim@0 {
			compatible = "soc-nv-flash"; reg = < 0x0 0x8000 >;
			partitions {
				compatible = "fixed-partitions"; #address-cells = < 0x1 >; #size-cells = < 0x1 >;
				simulated: partition@0 { reg = < 0x0 0x8000 >; };
				broken: partition@1 { reg = < 0x1 >; };
			};
		};
	};
	memory@20000000 { reg = < 0x20000000 0x10000 >; device_type = "memory"; };
};
"""


@pytest.mark.parametrize(
    ("name", "address", "size"),
    [
        ("boot_partition", 0x8000000, 0xC000),
        ("mcuboot", 0x8000000, 0xC000),
        ("slot0_partition", 0x800C000, 0x40000),
        ("other", 0x800C000, 0x40000),
        ("image-0", 0x800C000, 0x40000),
        ("model-a", 0x8080000, 0x10000),
        ("model_b", 0x8090000, 0x10000),
        ("model_c", 0x80A8000, 0x8000),
        ("mapped", 0x50004000, 0x2000),
    ],
)
def test_partitions_have_the_address_of_the_processor(name, address, size):
    assert partition(TREE, name) == (address, size)


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        (TREE, "external", "is in flash that is not memory-mapped: flash@0"),
        (TREE, "simulated", "is in flash that is not memory-mapped: flash_sim@0"),
        (TREE, "outside", "is outside of the ranges of flash@100000000"),
        (TREE, "broken", "has no address and size"),
        (TREE, "model_d", "no partition 'model_d' in the devicetree"),
        (TREE, "flash0", "no partition 'flash0'"),
        ("/ { a { };", "slot", "no partition"),
        ("};", "slot", "unbalanced"),
        ("a { };", "slot", "a node outside of the root"),
        ("/ { { }; };", "slot", "a node without a name"),
        ("/ { a = < 1x >; };", "slot", "invalid cell"),
        ("/ { a = \x01; };", "slot", "unknown text"),
        ("", "slot", "no partition"),
    ],
    ids=lambda value: "tree" if value is TREE else None,
)
def test_partitions_that_cannot_be_slots(text, name, message):
    with pytest.raises(TreeError, match=message):
        partition(text, name)


def slot(text, build=None):
    faults = Diagnostics()
    found = read_slot(text, build, faults)
    return found, [one.message for one in faults]


@pytest.mark.parametrize(
    ("text", "expected", "messages"),
    [
        ("0x80000", Slot(0x80000, None), []),
        ("524288", Slot(0x80000, None), []),
        ("0x80000:0x10000", Slot(0x80000, 0x10000), []),
        ("0x80000:64K", Slot(0x80000, 0x10000), []),
        ("0x80000:1m", Slot(0x80000, 0x100000), []),
        ("0", Slot(0, None), []),
        ("0x80001", None, ["--slot: address 0x80001 is misaligned"]),
        ("0x80000:256", None, ["--slot: the slot has 256 bytes"]),
        ("0x80000:12Q", None, ["invalid slot '0x80000:12Q'"]),
        ("12abc", None, ["invalid slot '12abc'"]),
        ("model_a", None, ["--slot: partition 'model_a' requires the build that defines it"]),
    ],
)
def test_addresses(text, expected, messages):
    assert slot(text) == (expected, messages)


def test_a_partition_of_a_build(tmp_path):
    assert slot("model_a", tmp_path)[1] == ["cannot read the devicetree of the build: No such file or directory"]
    (tmp_path / "zephyr").mkdir()
    (tmp_path / "zephyr" / "zephyr.dts").write_text(TREE)
    assert slot("model_a", tmp_path) == (Slot(0x8080000, 0x10000), [])
    assert slot("external", tmp_path)[1] == ["partition 'external' is in flash that is not memory-mapped: flash@0"]

# SPDX-License-Identifier: Apache-2.0
"""Readers of bundles, of devicetrees and of the commands of a build."""

import json
from pathlib import Path

from fuzz_readers import Read, Reader
from opwest.bundles.explanation import as_json, as_text
from opwest.bundles.format import LLEXT, AbiFields, BundleError, Content, Signature, pack, unpack, with_signatures
from opwest.bundles.slots import TreeError, partition

_ABI = AbiFields(40, 4, 2, 0, 0, 7, 1, 3, 0xA2, 40, 1, 2, 3, 28, 4, 640, 8, 64, 5)
_TREE = """/dts-v1/;
/ { #address-cells = <1>; #size-cells = <1>; soc { ranges; #address-cells = <1>; #size-cells = <1>;
flash0: flash@8000000 { reg = <0x8000000 0x10000>; partitions { compatible = "fixed-partitions";
#address-cells = <1>; #size-cells = <1>; slot: partition@0 { label = "slot"; reg = <0x0 0x8000>; }; }; }; }; };
"""


def _bundles() -> list[bytes]:
    image = bytes(range(200))
    linked = Content(0, 0x80000, 8, (1, 2, 3), 5, bytes(32), "digits", _ABI, image, "0123  4  a.o  GCC\n")
    loaded = Content(LLEXT, 0, 0, (1, 2, 3), 5, bytes(32), "digits", _ABI, image, "")
    signature = Signature(bytes(8), bytes(64))
    return [pack(linked), with_signatures(pack(linked), [signature] * 4), with_signatures(pack(loaded), [signature])]


def _start_bundle(_folder: Path) -> Read:
    def read(data: bytes) -> str:
        try:
            found = unpack(data)
        except BundleError as error:
            return error.message
        json.dumps(as_json("x", found))
        return str(len(as_text("x", found)) // 16)

    return read


READERS = (
    Reader("bundle", _bundles, _start_bundle),
    Reader(
        "zephyr.dts",
        lambda: [_TREE],
        lambda _folder: lambda data: str(partition(data.decode("utf-8", "replace"), "slot")),
        runs=50_000,
        refuses=(TreeError,),
        longest=10_000,
    ),
)

# SPDX-License-Identifier: Apache-2.0
"""Build attributes (`.ARM.attributes`, `.riscv.attributes`): the architecture and ABI of the code.

Both use the format of the Arm ABI: a version byte `A`, then one subsection per vendor, which holds
tagged values for the file as a whole.
"""

from __future__ import annotations

from dataclasses import replace

from opwest.objects.elf import Elf, damaged
from opwest.objects.facts import Abi, Endian, EnumSize, FloatAbi, Fpu, Mve

_FILE_SCOPE = 1
# Tags of the Arm ABI ("Addenda to, and Errata in, the ABI for the Arm Architecture").
_ARM_CPU_ARCH, _ARM_CPU_ARCH_PROFILE, _ARM_FP_ARCH, _ARM_ABI_VFP_ARGS, _ARM_MVE_ARCH = 6, 7, 10, 28, 48
_ARM_PCS_R9_USE, _ARM_PCS_RW_DATA, _ARM_WCHAR, _ARM_ENUM, _ARM_HARDFP_USE, _ARM_DSP = 14, 15, 18, 26, 27, 46
_R9_STATIC_BASE, _RW_DATA_STATIC_BASE, _SINGLE_PRECISION_ONLY = 1, 2, 1
_EF_ARM_BE8, _EF_RISCV_RVC, _EF_RISCV_RVE = 0x00800000, 0x1, 0x8
_ARM_STRINGS = (4, 5)
_ARM_COMPATIBILITY = 32
_RISCV_ARCH = 5
_ARM_ARCHITECTURES = {
    0: "pre-v4", 1: "v4", 2: "v4T", 3: "v5T", 4: "v5TE", 5: "v5TEJ", 6: "v6", 7: "v6KZ", 8: "v6T2", 9: "v6K",
    10: "v7", 11: "v6-M", 12: "v6S-M", 13: "v7E-M", 14: "v8-A", 15: "v8-R", 16: "v8-M.baseline",
    17: "v8-M.mainline", 18: "v8.1-A", 19: "v8.2-A", 20: "v8.3-A", 21: "v8.1-M.mainline", 22: "v9-A",
}  # fmt: skip
_ARM_PROFILES = {ord("A"): "A", ord("R"): "R", ord("M"): "M"}
_RISCV_FLOAT: tuple[FloatAbi, ...] = ("soft", "single", "double", "quad")

Attributes = dict[int, int | str]


class _Reader:
    """A bounds-checked cursor over attribute data."""

    def __init__(self, data: bytes, endian: Endian) -> None:
        self.data = data
        self.endian = endian
        self.at = 0

    def __bool__(self) -> bool:
        return self.at < len(self.data)

    def bytes(self, count: int) -> bytes:
        if count < 0 or self.at + count > len(self.data):
            raise damaged("truncated build attributes")
        self.at += count
        return self.data[self.at - count : self.at]

    def word(self) -> int:
        return int.from_bytes(self.bytes(4), self.endian)

    def uleb(self) -> int:
        value = shift = 0
        while True:
            byte = self.bytes(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value
            if shift > 63:
                raise damaged("a build attribute exceeds 64 bits")

    def text(self) -> str:
        end = self.data.find(b"\0", self.at)
        if end < 0:
            raise damaged("unterminated string in the build attributes")
        return self.bytes(end - self.at + 1)[:-1].decode("utf-8", "backslashreplace")


def read_attributes(data: bytes, endian: Endian, vendor: str) -> Attributes:
    """Return the attributes of `vendor` for the whole file, by tag."""
    attributes: Attributes = {}
    if not data:
        return attributes
    if data[:1] != b"A":
        raise damaged("unknown version of the build attributes")
    reader = _Reader(data[1:], endian)
    while reader:
        length = reader.word()
        subsection = _Reader(reader.bytes(length - 4), endian)
        if subsection.text() != vendor:
            continue
        while subsection:
            start = subsection.at
            scope, size = subsection.uleb(), subsection.word()
            body = _Reader(subsection.bytes(size - (subsection.at - start)), endian)
            if scope == _FILE_SCOPE:
                _read_file_scope(body, vendor, attributes)
    return attributes


def _read_file_scope(body: _Reader, vendor: str, attributes: Attributes) -> None:
    """Add the tagged values of one group to `attributes`."""
    arm = vendor == "aeabi"
    while body:
        tag = body.uleb()
        if arm and tag == _ARM_COMPATIBILITY:
            body.uleb()
            attributes[tag] = body.text()
        elif (arm and tag in _ARM_STRINGS) or (tag % 2 and (not arm or tag > _ARM_COMPATIBILITY)):
            attributes[tag] = body.text()
        else:
            attributes[tag] = body.uleb()


def _number(attributes: Attributes, tag: int) -> int:
    value = attributes.get(tag, 0)
    return value if isinstance(value, int) else 0


def _arm_architecture(attributes: Attributes) -> str | None:
    """Return the architecture; the profile of v7 has its own tag."""
    if _ARM_CPU_ARCH not in attributes:
        return None
    number = _number(attributes, _ARM_CPU_ARCH)
    name = _ARM_ARCHITECTURES.get(number, f"unknown-{number}")
    profile = _ARM_PROFILES.get(_number(attributes, _ARM_CPU_ARCH_PROFILE))
    return f"v7-{profile}" if name == "v7" and profile else name


def _arm_float_abi(attributes: Attributes) -> FloatAbi:
    passing = _number(attributes, _ARM_ABI_VFP_ARGS)
    if passing == 1:
        return "hard"
    if passing == 3:
        return "any"
    # The vector extension of M-profile (MVE, Helium) uses the registers of the FPU.
    uses_fpu = _number(attributes, _ARM_FP_ARCH) > 0 or _number(attributes, _ARM_MVE_ARCH) > 0
    return "softfp" if uses_fpu else "soft"


def _arm_abi(elf: Elf) -> Abi:
    """Return the ABI of an Arm object (tags and values: ABI addenda, section 3.3)."""
    eabi, be8 = elf.flags >> 24, bool(elf.flags & _EF_ARM_BE8)
    abi = Abi(elf.machine_name, elf.layout.bits, elf.layout.endian, eabi=eabi, be8=be8)
    section = elf.find(".ARM.attributes")
    attributes = read_attributes(elf.data(section), elf.layout.endian, "aeabi") if section else {}
    if not attributes:
        return abi
    mves: dict[int, Mve] = {1: "integer", 2: "float"}
    enums: dict[int, EnumSize] = {1: "short", 2: "int"}
    # The widest FPU instructions: Tag_ABI_HardFP_use 1 narrows Tag_FP_arch to single precision.
    fpu: Fpu = "single" if _number(attributes, _ARM_HARDFP_USE) == _SINGLE_PRECISION_ONLY else "double"
    return replace(
        abi,
        arch=_arm_architecture(attributes),
        float_abi=_arm_float_abi(attributes),
        enum_size=enums.get(_number(attributes, _ARM_ENUM)),
        wchar_size=_number(attributes, _ARM_WCHAR) or None,
        static_base=_number(attributes, _ARM_PCS_R9_USE) == _R9_STATIC_BASE
        or _number(attributes, _ARM_PCS_RW_DATA) == _RW_DATA_STATIC_BASE,
        dsp=_number(attributes, _ARM_DSP) > 0 if _ARM_DSP in attributes else None,
        mve=mves.get(_number(attributes, _ARM_MVE_ARCH), "none"),
        fpu=fpu if _number(attributes, _ARM_FP_ARCH) else "none",
    )


def abi_of(elf: Elf) -> Abi:
    """Return the ABI of an object."""
    machine, endian = elf.machine_name, elf.layout.endian
    if machine == "arm":
        return _arm_abi(elf)
    if machine != "riscv":
        return Abi(machine, elf.layout.bits, endian)
    section = elf.find(".riscv.attributes")
    attributes = read_attributes(elf.data(section), endian, "riscv") if section else {}
    isa = attributes.get(_RISCV_ARCH)
    return Abi(
        machine,
        elf.layout.bits,
        endian,
        isa if isinstance(isa, str) else None,
        _RISCV_FLOAT[elf.flags >> 1 & 3],
        rve=bool(elf.flags & _EF_RISCV_RVE),
        rvc=bool(elf.flags & _EF_RISCV_RVC),
    )

# SPDX-License-Identifier: Apache-2.0
"""Why firmware refuses a bundle, and what to do: enum opwest_bundle_fault of opwest/bundle_format.h in plain words."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from opwest.base.frozen_dataclass import dataclass
from opwest.bundles.capabilities import names
from opwest.bundles.format import FLOAT_ABI_NAMES
from opwest.bundles.link import Fields

GOOD, NO_BUNDLE, FORMAT, HEADER, SIZE, READ_BACK, SIGNATURE, SLOT, MACHINE, FLOAT_ABI, CPU, LAYOUT = range(12)
DESCRIPTOR, MEMORY, DEVICES, DOWNGRADE, RUN, VECTOR, UNCONFIRMED, KIND, STORAGE, NO_VECTOR, CRASHES = range(12, 23)

_FIELDS = {
    138: "pointer size",
    140: "byte order",
    141: "reserved byte",
    142: "version of the metadata",
    144: "version of the host functions",
    146: "options of the layout",
    152: "size of struct opwest_slot",
}
"""The fields of the ABI record that have no fault of their own, by their offset in the file."""


@dataclass(frozen=True)
class Verdict:
    """struct opwest_bundle_verdict of the runtime."""

    fault: int
    name: str
    detail: int
    found: int
    expected: int

    @property
    def reason(self) -> str:
        """The fault as a clause."""
        text = _REASONS.get(self.fault)
        if text is None:
            text = f"{self.name or 'unknown fault'} ({self.fault}): detail {self.detail}"
            return f"{text}, found {self.found}, expected {self.expected}"
        return text(self) if callable(text) else text

    @property
    def hint(self) -> str | None:
        """What to do."""
        return _HINTS.get(self.fault)

    def as_json(self) -> dict[str, object]:
        """Return the value for JSON output."""
        return {
            "fault": self.name,
            "detail": self.detail,
            "found": self.found,
            "expected": self.expected,
            "reason": self.reason,
        }


def read_verdict(fields: Fields) -> Verdict:
    """Return the verdict of a response."""
    fault, detail, found, expected = map(fields.number, ("fault", "detail", "found", "expected"))
    return Verdict(fault, fields.text("fault_name"), detail, found, expected)


def version_text(number: int) -> str:
    """Return a version: major, minor, patch."""
    return f"{number >> 24}.{number >> 16 & 0xFF}.{number & 0xFFFF}"


def _format(verdict: Verdict) -> str:
    text = "the firmware does not read its version of the format"
    return f"{text}; it reads version {verdict.expected}" if verdict.expected else text


def _field(verdict: Verdict) -> str:
    what = _FIELDS.get(verdict.detail, f"field at {verdict.detail}")
    return f"the {what} is {verdict.found}, the firmware has {verdict.expected}"


def _machine(verdict: Verdict) -> str:
    if verdict.detail in _FIELDS:
        return _field(verdict)
    return f"it is for the machine {verdict.found} (e_machine of ELF), the firmware runs on {verdict.expected}"


def _float_abi(verdict: Verdict) -> str:
    both = (verdict.found, verdict.expected)
    known = dict(enumerate(FLOAT_ABI_NAMES))
    found, expected = (known.get(number, str(number)) for number in both)
    return f"its float ABI is {found}, that of the firmware {expected}"


def _cpu(verdict: Verdict) -> str:
    missing = names(verdict.found & ~verdict.expected)
    return f"the processor does not have: {', '.join(missing) or 'the register set of the code'}"


def _memory(verdict: Verdict) -> str:
    who = "the trial" if verdict.detail < 0 else f"session {verdict.detail}"
    return f"it needs {verdict.found} bytes of memory, {who} has {verdict.expected}"


_REASONS: Mapping[int, str | Callable[[Verdict], str]] = {
    GOOD: "it is accepted",
    NO_BUNDLE: "the slot contains no bundle",
    FORMAT: _format,
    HEADER: "its header is damaged",
    SIZE: lambda v: f"its parts need {v.found} bytes, there are {v.expected}",
    READ_BACK: "the content of the slot differs from the file that was sent",
    SIGNATURE: "no signature is valid for a key of the firmware",
    SLOT: lambda v: f"it is linked for the slot at 0x{v.found:x}, not for this one at 0x{v.expected:x}",
    MACHINE: _machine,
    FLOAT_ABI: _float_abi,
    CPU: _cpu,
    LAYOUT: _field,
    DESCRIPTOR: lambda v: f"its description contradicts its header at {v.detail}",
    MEMORY: _memory,
    DEVICES: lambda v: f"the firmware has no device for device {v.detail} of the model",
    DOWNGRADE: lambda v: (
        f"its version {version_text(v.found)} is older than {version_text(v.expected)}, "
        "which was confirmed for this model"
    ),
    RUN: lambda v: f"the model failed on its golden vectors with error {v.detail}",
    VECTOR: lambda v: f"the outputs of golden vector {v.detail} differ from the expected ones",
    UNCONFIRMED: "the board restarted, or the model was rolled back, before the model was confirmed",
    KIND: "the firmware cannot load this kind of image",
    STORAGE: lambda v: f"the flash or the records of the board failed with error {v.detail}",
    NO_VECTOR: "it contains no golden vector",
    CRASHES: "the board restarted too often without a report that the application works",
}
_REBUILD = "build the bundle for the configuration of the firmware"
_HINTS: Mapping[int, str] = {
    NO_BUNDLE: "send a file of 'opwest bundle'",
    FORMAT: "build the bundle with the opwest of the firmware, or update the firmware",
    HEADER: "build the bundle again",
    SIZE: "use a larger slot, or a smaller model",
    READ_BACK: "send the file again; if it happens again, the flash of the slot is worn out",
    SIGNATURE: "sign the bundle with a key of the firmware; 'opwest bundle --verify' finds changes",
    SLOT: "build a file for this slot: opwest bundle MANIFEST --slot ADDRESS",
    MACHINE: _REBUILD,
    FLOAT_ABI: _REBUILD,
    CPU: "compile the model for the processor of the board",
    LAYOUT: "build the bundle with the opwest of the firmware, or update the firmware",
    DESCRIPTOR: "build the bundle again; the file is signed, so its build was wrong",
    MEMORY: "provide more memory in the firmware (opwest_bundles_needs()), or use a model with a smaller workspace",
    DEVICES: "list the device in struct opwest_bundles_config, or build the model for other devices",
    DOWNGRADE: "give the bundle a higher version; allows_downgrade of the firmware permits older ones",
    RUN: "run the model with 'opwest run --board' on a board of the same kind",
    VECTOR: "compare the compilers and options of both builds; 'opwest run --board --check-steps' finds the step",
    UNCONFIRMED: "the application confirms with opwest_bundles_confirm(), a host with 'opwest bundle confirm'",
    KIND: "build the file with --slot, or set CONFIG_OPWEST_BUNDLE_LLEXT in the firmware",
    STORAGE: "restart the board and try again; if it happens again, the flash is worn out",
    NO_VECTOR: "add golden vectors to the manifest (tests: vectors:)",
    CRASHES: "find the fault with a debugger; the application reports with opwest_bundles_healthy()",
}

# SPDX-License-Identifier: Apache-2.0
"""`opwest inspect x.bundle`: every field of a bundle, as text and as JSON."""

from __future__ import annotations

from typing import Any

from opwest.base.diagnostics import readable
from opwest.bundles.capabilities import names
from opwest.bundles.format import (
    FLOAT_ABI_NAMES,
    HEADER_SIZE,
    KINDS,
    LAYOUT_SHORT_ENUMS,
    LAYOUT_STEPS,
    LINKED,
    VERSION,
    Bundle,
)
from opwest.objects.elf import machine_name

_LAYOUTS = {LAYOUT_STEPS: "steps", LAYOUT_SHORT_ENUMS: "short enums"}
_SIZES = ("pointer", "slot", "workspace", "pools", "inputs", "outputs")
_NAMES = {f"{name}_size": f"{name}_bytes" for name in _SIZES} | {
    name: f"{name.removesuffix('s')}_count" for name in ("devices", "inputs", "outputs")
}
"""Fields of the format, by their names in JSON output."""


def as_json(path: str, bundle: Bundle) -> dict[str, Any]:
    """Return all fields."""
    content, abi = bundle.content, bundle.content.abi
    fields = {
        **abi._asdict(),
        "machine": machine_name(abi.machine),
        "float_abi": FLOAT_ABI_NAMES[abi.float_abi] if abi.float_abi < len(FLOAT_ABI_NAMES) else str(abi.float_abi),
        "big_endian": bool(abi.big_endian),
        "layout": _layout(abi.layout),
        "cpu": names(abi.cpu),
    }
    return {
        "file": path,
        "kind": "bundle",
        "format": VERSION,
        "bytes": len(bundle.data),
        "header_bytes": HEADER_SIZE,
        "signed_bytes": bundle.length,
        "link": "slot" if content.kind == LINKED else "llext",
        "slot_address": content.slot_address if content.kind == LINKED else None,
        "image": {"offset": bundle.image_offset, "bytes": len(content.image)},
        "descriptor_offset": bundle.image_offset + content.descriptor if content.kind == LINKED else None,
        "model": content.name,
        "version": content.version_text,
        "model_hash": content.model_hash.hex(),
        "interface_hash": f"0x{content.interface_hash:016x}",
        "abi": {_NAMES.get(key, key): value for key, value in fields.items() if key != "reserved"},
        "sbom_offset": bundle.sbom_offset,
        "sbom": content.sbom.splitlines(),
        "signatures": [
            {"algorithm": "Ed25519", "key": signature.key.hex(), "value": signature.value.hex()}
            for signature in bundle.signatures
        ],
    }


def as_text(path: str, bundle: Bundle) -> str:
    """Return all fields as lines."""
    values = as_json(path, bundle)
    abi = values["abi"]
    image = values["image"]
    order = "big-endian" if abi["big_endian"] else "little-endian"
    machine = f"{abi['machine']}, pointers of {abi['pointer_bytes']} bytes, {order}, float ABI: {abi['float_abi']}"
    place = f"slot 0x{values['slot_address']:x}" if values["slot_address"] is not None else "no slot"
    at = values["descriptor_offset"]
    descriptor = f", descriptor at {at}" if at is not None else ""
    rows = [
        ("model", f"{readable(values['model'])} {values['version']}"),
        ("format", f"version {values['format']}, header of {values['header_bytes']} bytes"),
        ("kind", f"{KINDS[bundle.content.kind]}, {place}"),
        ("size", f"{values['bytes']} bytes, {values['signed_bytes']} of them signed"),
        ("image", f"{image['bytes']} bytes at {image['offset']}{descriptor}"),
        ("model hash", values["model_hash"]),
        ("interface hash", values["interface_hash"]),
        ("machine", machine),
        ("processor", ", ".join(abi["cpu"]) or "no requirements"),
        ("layout", ", ".join(abi["layout"]) or "no options"),
        ("metadata", f"version {abi['metadata_version']}, functions of the firmware: version {abi['host_version']}"),
        ("inputs", f"{abi['input_count']}, {abi['inputs_bytes']} bytes"),
        ("outputs", f"{abi['output_count']}, {abi['outputs_bytes']} bytes"),
        ("workspace", f"{abi['workspace_bytes']} bytes, aligned to {abi['workspace_align']}"),
        ("pools", f"{abi['pools_bytes']} bytes, aligned to {abi['pools_align']}"),
        (
            "devices",
            f"{abi['device_count']}" + (f", slots of {abi['slot_bytes']} bytes" if abi["device_count"] else ""),
        ),
    ]
    lines = [f"{path}: bundle", *(f"  {name + ':':<16} {value}" for name, value in rows)]
    lines += [
        f"  bill of materials, at {values['sbom_offset']}:",
        *(f"    {readable(line)}" for line in values["sbom"]),
    ]
    signatures = [f"    Ed25519, key {signature['key']}" for signature in values["signatures"]]
    return "\n".join([*lines, "  signatures:", *(signatures or ["    none: firmware refuses the bundle"])])


def _layout(layout: int) -> list[str]:
    options = [name for bit, name in _LAYOUTS.items() if layout & bit]
    rest = layout & ~(LAYOUT_STEPS | LAYOUT_SHORT_ENUMS)
    return options + ([f"0x{rest:x}"] if rest else [])

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


def as_json(path: str, bundle: Bundle) -> dict[str, Any]:
    """Return all fields."""
    content, abi = bundle.content, bundle.content.abi
    fields = {
        **abi._asdict(),
        "machine": machine_name(abi.machine),
        "float_abi": FLOAT_ABI_NAMES[abi.float_abi] if abi.float_abi < len(FLOAT_ABI_NAMES) else abi.float_abi,
        "big_endian": bool(abi.big_endian),
        "layout": _layout(abi.layout),
        "cpu": names(abi.cpu),
    }
    return {
        "path": path,
        "format": VERSION,
        "header_size": HEADER_SIZE,
        "size": len(bundle.data),
        "signed_size": bundle.length,
        "kind": KINDS[content.kind],
        "slot_address": content.slot_address if content.kind == LINKED else None,
        "image": {"offset": bundle.image_offset, "size": len(content.image)},
        "descriptor": bundle.image_offset + content.descriptor if content.kind == LINKED else None,
        "model": content.name,
        "version": content.version_text,
        "model_hash": content.model_hash.hex(),
        "interface_hash": f"0x{content.interface_hash:016x}",
        "abi": {key: value for key, value in fields.items() if key != "reserved"},
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
    machine = f"{abi['machine']}, pointers of {abi['pointer_size']} bytes, {order}, float ABI: {abi['float_abi']}"
    place = f"slot 0x{values['slot_address']:x}" if values["slot_address"] is not None else "no slot"
    descriptor = f", descriptor at {values['descriptor']}" if values["descriptor"] is not None else ""
    rows = [
        ("model", f"{readable(values['model'])} {values['version']}"),
        ("format", f"version {values['format']}, header of {values['header_size']} bytes"),
        ("kind", f"{values['kind']}, {place}"),
        ("size", f"{values['size']} bytes, {values['signed_size']} of them signed"),
        ("image", f"{image['size']} bytes at {image['offset']}{descriptor}"),
        ("model hash", values["model_hash"]),
        ("interface hash", values["interface_hash"]),
        ("machine", machine),
        ("processor", ", ".join(abi["cpu"]) or "no requirements"),
        ("layout", ", ".join(abi["layout"]) or "no options"),
        ("metadata", f"version {abi['metadata_version']}, functions of the firmware: version {abi['host_version']}"),
        ("inputs", f"{abi['inputs']}, {abi['inputs_size']} bytes"),
        ("outputs", f"{abi['outputs']}, {abi['outputs_size']} bytes"),
        ("workspace", f"{abi['workspace_size']} bytes, aligned to {abi['workspace_align']}"),
        ("pools", f"{abi['pools_size']} bytes, aligned to {abi['pools_align']}"),
        ("devices", f"{abi['devices']}" + (f", slots of {abi['slot_size']} bytes" if abi["devices"] else "")),
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

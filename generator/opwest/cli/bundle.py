# SPDX-License-Identifier: Apache-2.0
"""`opwest bundle`: make, sign and verify bundles."""

from __future__ import annotations

import argparse
import re

from opwest.base.diagnostics import Diagnostics, Location, fail
from opwest.base.result import Result, counted
from opwest.bundles.build import BundleRequest, check_choice, make_bundle
from opwest.bundles.explanation import as_json
from opwest.bundles.format import (
    MAX_SIGNATURES,
    is_bundle,
    read_bundle,
    unpack,
    with_signatures,
    write_file,
    write_headers,
)
from opwest.bundles.signing import (
    c_initialiser,
    key_id,
    read_private_keys,
    read_public_keys,
    sign,
    valid_keys,
)
from opwest.bundles.slots import read_slot

_VERSION = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,5})")


def bundle(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Do what the options request."""
    if options.export_key is not None:
        return _export(options, faults)
    if options.file is None:
        raise fail("no file is given", expected="MANIFEST, or FILE.bundle")
    if options.verify:
        return _verify(options, faults)
    return (_sign if is_bundle(options.file) else _make)(options, faults)


def _export(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Print the public key of a file."""
    if options.file is not None:
        faults.error(f"'{options.file}' has no effect with --export-key")
    keys = read_public_keys([options.export_key], faults)
    faults.raise_if_errors()
    raw = keys[0].public_bytes_raw()
    text = (
        f"/* {options.export_key.name}: key {key_id(raw).hex()}, for struct opwest_bundle_key */\n{c_initialiser(raw)}"
    )
    return Result(text, {"key": key_id(raw).hex(), "bytes": list(raw)}, is_content=True)


def _sign(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Add signatures to a bundle."""
    at = Location(str(options.file))
    if not options.key and options.output is None:
        faults.error(
            f"no action for {options.file.name!r}",
            at,
            expected="--verify, or --key KEY -o FILE",
            hint="to send it to a board: opwest bundle install FILE",
        )
    elif not options.key:
        faults.error("no key is given", at, expected="--key FILE.pem")
    elif options.output is None:
        faults.error("no output is given", at, expected="-o FILE.bundle")
    faults.raise_if_errors()
    bundle = read_bundle(options.file)
    keys = read_private_keys(options.key, faults)
    faults.raise_if_errors()
    signatures = sign(bundle.signed, keys, bundle.signatures)
    data = with_signatures(bundle.signed, signatures)
    write_file(options.output, data)
    text = f"{options.output}: {len(data)} bytes, {counted(len(signatures), 'signature')}"
    return Result(text, as_json(str(options.output), unpack(data)))


def _verify(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Check the format and the signatures of a bundle."""
    if not options.public_key:
        raise fail("--verify requires --public-key", expected="--public-key FILE.pem")
    keys = read_public_keys(options.public_key, faults)
    faults.raise_if_errors()
    bundle = read_bundle(options.file)
    valid = valid_keys(bundle, keys)
    at = Location(str(options.file))
    if not bundle.signatures:
        faults.error("the bundle has no signature", at, expected="a signature by one of the keys")
    elif not valid:
        faults.error(
            "no valid signature by one of the keys",
            at,
            expected=f"a signature by {' or '.join(key_id(key.public_bytes_raw()).hex() for key in keys)}",
            hint=f"the bundle has signatures by {', '.join(signature.key.hex() for signature in bundle.signatures)}",
        )
    faults.raise_if_errors()
    content = bundle.content
    names = [str(options.public_key[index]) for index in valid]
    text = f"{options.file}: {content.name} {content.version_text}: valid signature by {', '.join(names)}"
    return Result(text, {**as_json(str(options.file), bundle), "valid": names})


def _make(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Make a bundle of a manifest."""
    if options.output is None:
        faults.error("no output is given", expected="-o FILE.bundle")
    if options.slot is None and not options.llext:
        faults.error("no slot is given", expected="--slot ADDRESS[:SIZE], --slot PARTITION --build DIR, or --llext")
    if options.slot is not None and options.llext:
        faults.error("--slot cannot be used with --llext: LLEXT places the image")
    if not options.key and not options.unsigned:
        faults.error(
            "no key is given: firmware refuses a bundle without a signature",
            expected="--key FILE.pem, or --unsigned",
            hint="sign the bundle later: opwest bundle FILE.bundle --key FILE.pem -o FILE",
        )
    if options.key and options.unsigned:
        faults.error("--unsigned excludes --key")
    if len(options.key) > MAX_SIGNATURES:
        faults.error(f"{len(options.key)} keys are given", expected=f"at most {MAX_SIGNATURES}")
    complete = not faults.has_errors
    version = _version(options.model_version, faults)
    slot = read_slot(options.slot, options.build, faults) if options.slot is not None else None
    keys = read_private_keys(options.key, faults) if options.key and complete else []
    request = BundleRequest(
        options.file,
        slot,
        version,
        options.build,
        options.target,
        options.cc,
        options.variant,
        steps=options.steps,
        observable=options.observable,
        depfile=options.depfile,
        **({"cases": options.vectors} if options.vectors is not None else {}),
    )
    if faults.has_errors:
        if complete:
            check_choice(request)
        faults.raise_if_errors()
    made = make_bundle(request, faults)
    data = with_signatures(made.signed, sign(made.signed, keys))
    if slot is not None and slot.size is not None and len(data) > slot.size:
        raise fail(
            f"the bundle has {len(data)} bytes, its slot {slot.size}",
            made.model.location,
            hint="use a larger partition, or fewer golden vectors: --vectors N",
        )
    write_file(options.output, data)
    if options.header is not None:
        write_headers(options.header, made.headers)
    content, bundle = made.content, unpack(data)
    place = "for LLEXT" if made.slot is None else f"for the slot at 0x{content.slot_address:x}"
    text = (
        f"{options.output}: {content.name} {content.version_text} {place}: {len(data)} bytes, "
        f"{counted(made.vectors, 'golden vector')}, {counted(len(bundle.signatures), 'signature')}"
    )
    return Result(text, {**as_json(str(options.output), bundle), "vectors": made.vectors, "steps": made.steps})


def _version(text: str | None, faults: Diagnostics) -> tuple[int, int, int]:
    if text is None:
        faults.note(
            "the version of the model is 0.0.0: firmware cannot recognise an older one",
            hint="give it: --model-version 1.2.3",
        )
        return 0, 0, 0
    match = _VERSION.fullmatch(text)
    numbers = tuple(map(int, match.groups())) if match else (256,) * 3
    if numbers[0] > 255 or numbers[1] > 255 or numbers[2] > 65535:
        faults.error(
            f"--model-version: invalid version {text!r}",
            expected="MAJOR.MINOR.PATCH, such as 1.2.3, at most 255.255.65535",
        )
    return numbers[0], numbers[1], numbers[2]

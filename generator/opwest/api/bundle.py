# SPDX-License-Identifier: Apache-2.0
"""`opwest.bundle`: make, sign and verify bundles."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from opwest.api.calls import AnyPath, CallResult, Paths, api_function, path_of, paths_of
from opwest.base.diagnostics import Diagnostics, Location, fail
from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.bundles.build import BundleRequest, check_choice, make_bundle
from opwest.bundles.format import (
    MAX_SIGNATURES,
    Bundle,
    is_bundle,
    read_bundle,
    unpack,
    with_signatures,
    write_file,
    write_headers,
)
from opwest.bundles.signing import key_id, read_private_keys, read_public_keys, sign, valid_keys
from opwest.bundles.slots import read_slot

_VERSION = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,5})")
Action = Literal["make", "sign", "verify", "export_key"]
MAKE: Action = "make"
SIGN: Action = "sign"
"""The actions without an option of their own: the file is a manifest, or a bundle."""
_MAKING = (
    *("slot", "llext", "build", "target", "cc", "variant", "model_version", "vectors", "steps", "observable"),
    *("header", "depfile"),
)
PERMITTED: Mapping[Action, Sequence[str]] = MappingProxyType(
    {
        "export_key": (),
        "verify": ("public_key",),
        SIGN: ("key", "output"),
        MAKE: (*_MAKING, "key", "unsigned", "output"),
    }
)
"""The options by action. An action takes precedence over later ones."""


@dataclass(frozen=True)
class PublicKey:
    """The public key of a PEM file, for the firmware."""

    id: str
    """The first 8 bytes of the SHA-512 of the key."""
    raw: bytes


@dataclass(frozen=True)
class BundleResult(CallResult):
    """A bundle that was made, signed or verified, or a public key."""

    action: Action
    file: Path | None
    """The bundle that was written or verified."""
    bundle: Bundle | None
    """Its content and its signatures."""
    vectors: int = 0
    """The number of golden vectors."""
    steps: int = 0
    """The number of expected results of steps."""
    valid: tuple[Path, ...] = ()
    """The keys with a valid signature."""
    public_key: PublicKey | None = None


@api_function
def bundle(
    faults: Diagnostics,
    file: AnyPath | None = None,
    *,
    output: AnyPath | None = None,
    slot: str | int | None = None,
    llext: bool = False,
    build: AnyPath | None = None,
    target: str | None = None,
    cc: str | None = None,
    variant: str | None = None,
    model_version: str | None = None,
    vectors: int | None = None,
    steps: bool = False,
    observable: bool = False,
    header: AnyPath | None = None,
    depfile: AnyPath | None = None,
    key: Paths = (),
    unsigned: bool = False,
    verify: bool = False,
    public_key: Paths = (),
    export_key: AnyPath | None = None,
) -> BundleResult:
    """Make a bundle of a manifest in `output`: a model that firmware replaces in the field, linked for one slot.

    `slot` is an address, ADDRESS:SIZE, or with `build` a partition. If `file` is a bundle, add the signatures of `key`;
    with `verify`, check its signatures. `export_key` returns the public key of a PEM file.
    """
    given = {name: value for name, value in locals().items() if name not in ("faults", "file")}
    path, target_path, keys = path_of(file), path_of(output), paths_of(key)
    action = _action(path, given)
    _check_effects(action, path, given, faults)
    if export_key is not None:
        return _export(path, Path(export_key), faults)
    if path is None:
        raise fail("no file is given", expected="MANIFEST, or FILE.bundle")
    if action == "verify":
        return _verify(path, paths_of(public_key), faults)
    if action == SIGN:
        return _sign(path, keys, target_path, faults)
    place = f"0x{slot:x}" if isinstance(slot, int) else slot
    _check_making(place, target_path, keys, vectors, llext=llext, unsigned=unsigned, faults=faults)
    complete = not faults.has_errors
    version = _version(model_version, faults)
    known = read_slot(place, path_of(build), faults) if place is not None else None
    private = read_private_keys(list(keys), faults) if keys and complete else []
    request = BundleRequest(
        path,
        known,
        version,
        path_of(build),
        target,
        cc,
        variant,
        steps=steps,
        observable=observable,
        depfile=path_of(depfile),
        **({"cases": vectors} if vectors is not None else {}),
    )
    if faults.has_errors:
        if complete:
            check_choice(request)
        faults.raise_if_errors()
    made = make_bundle(request, faults)
    data = with_signatures(made.signed, sign(made.signed, private))
    if known is not None and known.size is not None and len(data) > known.size:
        raise fail(
            f"the bundle has {counted(len(data), 'byte')}, its slot {known.size}",
            made.model.location,
            hint="use a larger partition, or fewer golden vectors: --vectors N",
        )
    assert target_path is not None
    write_file(target_path, data)
    if header is not None:
        write_headers(Path(header), made.headers)
    return BundleResult(MAKE, target_path, unpack(data), made.vectors, made.steps)


def _action(file: Path | None, given: Mapping[str, Any]) -> Action:
    """Return the action that the options request."""
    if given["export_key"] is not None:
        return "export_key"
    if given["verify"]:
        return "verify"
    return SIGN if file is not None and is_bundle(file) else MAKE


def _check_effects(action: Action, file: Path | None, given: Mapping[str, Any], faults: Diagnostics) -> None:
    """Report options that have no effect with the action."""
    for name, value in given.items():
        if name in (action, *PERMITTED[action]) or value in (None, False, (), []):
            continue
        flag = _flag(name)
        if action not in (MAKE, SIGN):
            faults.error(f"{flag} has no effect with {_flag(action)}")
        elif name in PERMITTED[MAKE]:
            faults.error(f"{flag} has no effect on a bundle", Location(str(file)))
        else:
            *others, last = (_flag(other) for other, names in PERMITTED.items() if name in names)
            faults.error(f"{flag} requires {', '.join(others)}{' or ' if others else ''}{last}")


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _export(file: Path | None, source: Path, faults: Diagnostics) -> BundleResult:
    """Return the public key of a file."""
    if file is not None:
        faults.error(f"'{file}' has no effect with --export-key")
    keys = read_public_keys([source], faults)
    faults.raise_if_errors()
    raw = keys[0].public_bytes_raw()
    return BundleResult("export_key", None, None, public_key=PublicKey(key_id(raw).hex(), raw))


def _sign(file: Path, paths: Sequence[Path], output: Path | None, faults: Diagnostics) -> BundleResult:
    """Add signatures to a bundle."""
    at = Location(str(file))
    if not paths and output is None:
        faults.error(
            f"no action for {file.name!r}",
            at,
            expected="--verify, or --key KEY -o FILE",
            hint="to send it to a board: opwest bundle install FILE",
        )
    elif not paths:
        faults.error("no key is given", at, expected="--key FILE.pem")
    elif output is None:
        faults.error("no output is given", at, expected="-o FILE.bundle")
    faults.raise_if_errors()
    bundle = read_bundle(file)
    keys = read_private_keys(list(paths), faults)
    faults.raise_if_errors()
    assert output is not None
    data = with_signatures(bundle.signed, sign(bundle.signed, keys, bundle.signatures))
    write_file(output, data)
    return BundleResult(SIGN, output, unpack(data))


def _verify(file: Path, paths: Sequence[Path], faults: Diagnostics) -> BundleResult:
    """Check the format and the signatures of a bundle."""
    if not paths:
        raise fail("--verify requires --public-key", expected="--public-key FILE.pem")
    keys = read_public_keys(list(paths), faults)
    faults.raise_if_errors()
    bundle = read_bundle(file)
    valid = valid_keys(bundle, keys)
    at = Location(str(file))
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
    return BundleResult("verify", file, bundle, valid=tuple(paths[index] for index in valid))


def _check_making(
    slot: str | None,
    output: Path | None,
    keys: Sequence[Path],
    vectors: int | None,
    *,
    llext: bool,
    unsigned: bool,
    faults: Diagnostics,
) -> None:
    """Report what is missing to make a bundle, and options that exclude each other."""
    if output is None:
        faults.error("no output is given", expected="-o FILE.bundle")
    if slot is None and not llext:
        faults.error("no slot is given", expected="--slot ADDRESS[:SIZE], --slot PARTITION --build DIR, or --llext")
    if slot is not None and llext:
        faults.error("--slot cannot be used with --llext: LLEXT places the image")
    if not keys and not unsigned:
        faults.error(
            "no key is given: firmware refuses a bundle without a signature",
            expected="--key FILE.pem, or --unsigned",
            hint="sign the bundle later: opwest bundle FILE.bundle --key FILE.pem -o FILE",
        )
    if keys and unsigned:
        faults.error("--unsigned excludes --key")
    if len(keys) > MAX_SIGNATURES:
        faults.error(f"{counted(len(keys), 'key')} are given", expected=f"at most {MAX_SIGNATURES}")
    if vectors is not None and vectors < 1:
        faults.error(f"invalid vectors {vectors}", expected="1 or more")


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

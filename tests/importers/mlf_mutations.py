# SPDX-License-Identifier: Apache-2.0
"""Seeded mutations of archives in Model Library Format, and the invariants of their import."""

import contextlib
import io
import json
import re
import resource
import shutil
import struct
import tarfile
import time
from functools import partial

import mlf_made as made
import mlf_mains as mains
from models.damage import damaged
from opwest.base.diagnostics import Diagnostics, OpwestError
from opwest.frontends.mlf import Options, import_mlf
from projects import check

SECONDS = 10
BYTES = 512 << 20
VARIANTS = (made.usmp, made.workspace, made.packed, partial(made.packed, shapes=False), made.graph, made.cmsis_nn)
VARIANTS += (mains.usmp, partial(mains.usmp, constants="main"), mains.allocated, mains.overlapping)
_EVIL_NAMES = (b"../evil", b"/tmp/opwest-evil", b"codegen/../../evil", b"a\\..\\b", b"\xff\xfe", b"metadata.json/x")
_EVIL_NAMES += (b"", b"x" * 99)
_EVIL_SIZES = (b"77777777777", b"00000000000", b"\x80\0\0\0\xff\xff\xff\xff\xff\xff\xff", b"\xff" * 11)
_EVIL_SIZES += (b"99999999999", b" 12 ")
_KINDS = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.GNUTYPE_SPARSE)
_KINDS += (tarfile.REGTYPE, tarfile.DIRTYPE)
_EVIL_NUMBERS = (b"-1", b"0", b"1e9", b"99999999999999999999", b"null", b'"x"', b"[]", b"{}", b"2147483648", b"NaN")
_EVIL_TEXT = (b"{", b"}", b"((((", b"/*", b'"', b"0x", b"\0", b"[4294967295]", b"[99999999999]", b"aligned(3)", b"\\")


def mutated(random):
    """Return a mutated tar."""
    files = dict(random.choice(VARIANTS)())
    kind = random.randrange(8)
    if kind < 3:
        return damaged(made.tar_of(files), random)
    if kind == 3:
        return _header(made.tar_of(files), random)
    if kind == 4:
        return _member(files, random)
    name = random.choice(sorted(files))
    files[name] = content_of(name, files[name], random)
    return made.tar_of(files)


def _header(content, random):
    """Change a field of a header and update the checksum."""
    data = bytearray(content)
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        at = random.choice([member.offset for member in archive])
    match random.randrange(5):
        case 0:
            data[at : at + 100] = random.choice(_EVIL_NAMES)[:100].ljust(100, b"\0")
        case 1:
            data[at + 156 : at + 157] = bytes([random.randrange(256)])
        case 2:
            data[at + 124 : at + 136] = random.choice(_EVIL_SIZES).ljust(12, b"\0")
        case 3:
            data[at + 345 : at + 500] = random.choice(_EVIL_NAMES)[:155].ljust(155, b"\0")
        case 4:
            data[at + 257 : at + 265] = random.choice((b"ustar  \0", b"ustar\x0000", b"\0" * 8, b"garbage!"))
    data[at + 148 : at + 156] = b"        "
    data[at + 148 : at + 156] = b"%06o\0 " % sum(data[at : at + 512])
    return bytes(data)


def _member(files, random):
    """Add an unexpected member."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=random.choice((tarfile.GNU_FORMAT, tarfile.PAX_FORMAT))) as archive:
        names = sorted(files)
        evil = tarfile.TarInfo(random.choice((*names, "src/x", "runtime/x", "../x", "y" * 300)))
        evil.type = random.choice(_KINDS)
        evil.linkname = random.choice(("/etc/passwd", "../../x", names[0]))
        at = random.randrange(len(names))
        for number, name in enumerate(names):
            if number == at:
                archive.addfile(evil)
            one = tarfile.TarInfo(f"./{name}")
            one.size = len(files[name])
            if random.random() < 0.1:
                one.pax_headers = {"size": random.choice(("9" * 30, "-5", "1")), "path": "../" + name}
            archive.addfile(one, io.BytesIO(files[name]))
    return out.getvalue()


def content_of(name, content, random):
    """Change a significant part of a file."""
    if name.endswith((".json", ".graph")) and random.random() < 0.7:
        return _json(content, random)
    if name.endswith(".params") and random.random() < 0.7:
        data = bytearray(content)
        at = random.randrange(len(data) // 8) * 8
        data[at : at + 8] = struct.pack("<Q", random.choice((0, 1, 1 << 31, 1 << 63, (1 << 64) - 1, 4097)))
        return bytes(data)
    data = content
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(data) + 1)
        match random.randrange(4):
            case 0:
                data = data[:at] + random.choice(_EVIL_TEXT) * random.choice((1, 1, 3, 2000)) + data[at:]
            case 1:
                data = data[:at] + data[at + random.randint(1, 200) :]
            case 2:
                numbers = list(re.finditer(rb"\d+", data))
                if numbers:
                    one = random.choice(numbers)
                    data = data[: one.start()] + random.choice(_EVIL_NUMBERS) + data[one.end() :]
            case 3:
                data = data[:at] + data[max(0, at - 500) : at] * random.choice((1, 2, 50)) + data[at:]
    return data


def _json(content, random):
    """Replace a value somewhere in a JSON tree."""
    whole = json.loads(content)
    places = []

    def walk(value):
        keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
        for key in list(keys):
            places.append((value, key))
            walk(value[key])

    walk(whole)
    owner, key = random.choice(places)
    if random.random() < 0.2:
        del owner[key]
    else:
        text = random.choice((None, -1, 0, 1, 8, 1 << 40, 1e300, "x", "", [], {}, [[]], [1, 2, 3], True))
        owner[key] = text if random.random() < 0.97 else "DEEP"
    return json.dumps(whole).replace('"DEEP"', "[" * 5000 + "]" * 5000).encode()


def examine(content, folder, *, whole=True):
    """Import a tar in a new directory; check the project if `whole`.

    Returns "imported" or the first diagnostic. Asserts the invariants.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    tar = folder / "in.tar"
    tar.write_bytes(content)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    try:
        import_mlf(tar, folder / "out", Options("mine"))
        answer = "imported"
        if whole:
            with contextlib.suppress(OpwestError):
                check([folder / "out/manifest.yaml"], Diagnostics())
    except OpwestError as error:
        assert error.diagnostics and all(d.message for d in error.diagnostics)
        answer = error.diagnostics[0].message
        assert not (folder / "out").exists(), "the failed import wrote files"
    assert time.process_time() - start < SECONDS, "the import took too long"
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown < BYTES, f"the import took {grown} bytes"
    left = sorted(p.name for p in folder.iterdir())
    assert left in (["in.tar"], ["in.tar", "out"]), left
    for name in ("evil", "x"):
        assert not (folder.parent / name).exists()
    return answer

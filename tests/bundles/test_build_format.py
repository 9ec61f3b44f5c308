# SPDX-License-Identifier: Apache-2.0
"""The format of bundles in Python: bytes of a file, damaged files, signatures."""

import hashlib
import json
import re
import shutil
import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from bundle_images import DIGITS, EXAMPLES, HOST_SLOT, bundle
from opwest.base.diagnostics import Diagnostics
from opwest.bundles import format as bundle_format
from opwest.bundles.capabilities import OTHER, capabilities, names
from opwest.bundles.explanation import as_json, as_text
from opwest.bundles.format import LLEXT, AbiFields, BundleError, Content, Signature, pack, unpack, with_signatures
from opwest.cli.main import main
from opwest.objects.facts import Abi
from opwest.render.bundle import interface_hash, interface_text
from projects import check
from requirements_support import need

ABI = AbiFields(40, 4, 2, 0, 0, 7, 1, 3, 0xA2, 40, 1, 2, 3, 28, 4, 640, 8, 64, 5)
CONTENT = Content(
    kind=0,
    slot_address=0x1_0008_0000,
    descriptor=8,
    version=(1, 2, 515),
    interface_hash=0x1122334455667788,
    model_hash=bytes(range(32)),
    name="digits",
    abi=ABI,
    image=b"image of 18 bytes!",
    sbom="line é\n",
)
HEADERS = EXAMPLES.parent / "zephyr_module/include/opwest"
SIGNATURE = Signature(b"keyident", bytes(64))


def test_every_byte_of_a_small_bundle():
    """The tables of docs/contributing/bundle-format.md, row by row."""
    data = with_signatures(pack(CONTENT), [SIGNATURE])
    header = b"OPWB" + struct.pack("<HHII", 1, 256, 288, 0) + struct.pack("<Q", 0x1_0008_0000)
    header += struct.pack("<IIIII", 256, 18, 264, 274, 8)
    header += struct.pack("<I", 0x01020203) + bytes.fromhex("8877665544332211") + bytes(range(32))
    header += b"digits".ljust(48, b"\0")
    header += struct.pack("<HBBBBHHHI", 40, 4, 2, 0, 0, 7, 1, 3, 0xA2) + struct.pack("<HHHH", 40, 1, 2, 3)
    header += struct.pack("<IIIIII", 28, 4, 640, 8, 64, 5) + bytes(72)
    assert len(header) == 256
    assert data[:256] == header
    assert data[256:288] == b"image of 18 bytes!" + "line é\n".encode() + bytes(6)
    assert data[288:] == b"OPWS" + struct.pack("<HH", 1, 0) + b"keyident" + struct.pack("<HHI", 1, 64, 0) + bytes(64)
    assert unpack(data).content == CONTENT
    assert unpack(data).signatures == (SIGNATURE,)


def damaged(offset, value, data=None):
    data = with_signatures(pack(CONTENT), [SIGNATURE]) if data is None else data
    return data[:offset] + value + data[offset + len(value) :]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a bundle"),
        (b"OPWA" + bytes(252), "not a bundle"),
        (b"OPWB" + bytes(100), "truncated: the file has 104 bytes, the header 256"),
        (damaged(4, b"\2"), "version 2 of the format is not supported"),
        (damaged(6, b"\0\0"), "the header has 0 bytes"),
        (damaged(8, b"\0\0\0\1"), "truncated: the signed part has 16777216 bytes"),
        (damaged(8, b"\x1f"), "the signed part has 287 bytes"),
        (damaged(12, b"\2"), "unknown kind 2"),
        (damaged(16, b"\1"), "the slot address or the offset of the descriptor is damaged"),
        (damaged(24, b"\1"), "the image, 18 bytes at 257, is not within the signed part"),
        (damaged(28, bytes(4)), "the image, 0 bytes at 256, is not within the signed part"),
        (damaged(32, bytes(4)), "the slot address or the offset of the descriptor is damaged"),
        (damaged(36, bytes(4)), "the bill of materials, 8 bytes at 0, is not within the signed part"),
        (damaged(40, b"\xff\xff\xff\xff"), "the bill of materials, 4294967295 bytes at 274"),
        (damaged(88, b"\0"), "the name of the model is damaged"),
        (damaged(88 + 8, b"x"), "the name of the model is damaged"),
        (damaged(88, b"x" * 48), "the name of the model is damaged"),
        (damaged(88, b"\xff"), "the name of the model is not UTF-8"),
        (damaged(141, b"\1"), "reserved bytes of the header are not zero"),
        (damaged(255, b"\1"), "reserved bytes of the header are not zero"),
        (damaged(279, b"\xff"), "the bill of materials is not UTF-8"),
        (damaged(283, b"\1"), "bytes between the parts are not zero"),
        (damaged(288, b"X"), "the block of signatures is damaged"),
        (damaged(292, b"\0"), "the block of signatures is damaged"),
        (damaged(292, b"\5"), "the block of signatures is damaged"),
        (damaged(292, b"\2"), "88 bytes follow the signed part"),
        (damaged(294, b"\1"), "the block of signatures is damaged"),
        (damaged(304, b"\2"), "a signature is damaged, or its algorithm is unknown"),
        (damaged(306, b"\2"), "a signature is damaged"),
        (damaged(308, b"\1"), "a signature is damaged"),
        (damaged(0, b"")[:-1], "87 bytes follow the signed part"),
        (damaged(0, b"")[:290], "truncated: 2 bytes follow the signed part"),
        (damaged(0, b"") + b"\0", "89 bytes follow the signed part"),
        (damaged(12, b"\1"), "an image for LLEXT has an address or a descriptor"),
    ],
)
def test_damaged_files_are_refused(data, message):
    with pytest.raises(BundleError, match="(?s)" + message.replace("(", r"\(")):
        unpack(data)


def test_an_image_for_llext_has_no_slot():
    found = unpack(pack(replace(CONTENT, kind=LLEXT, slot_address=0, descriptor=0)))
    assert found.content.kind == LLEXT
    assert as_json("x", found)["slot_address"] is None
    assert "LLEXT, no slot" in as_text("x", found)


@pytest.mark.parametrize(
    ("abi", "expected"),
    [
        (Abi("arm", 32, "little", "v6S-M", fpu="none"), ["ARMV6M"]),
        (Abi("arm", 32, "little", "v7E-M", fpu="double"), ["ARMV7M", "ARM_DSP", "ARM_FP_SINGLE", "ARM_FP_DOUBLE"]),
        (Abi("arm", 32, "little", "v8-M.mainline", dsp=True), ["ARMV8M_MAIN", "ARM_DSP"]),
        (Abi("arm", 32, "little", "v8-M.baseline", dsp=False), ["ARMV8M_BASE"]),
        (Abi("arm", 32, "little", "v8.1-M.mainline", mve="integer"), ["ARMV81M_MAIN", "ARM_MVE"]),
        (Abi("arm", 32, "little", "v9-A"), ["OTHER"]),
        (Abi("riscv", 32, "little", "rv32e1p9_m2p0", rve=True), ["RISCV_E", "RISCV_M"]),
        (Abi("riscv", 64, "little", "rv64gcv", rvc=True), [f"RISCV_{x}" for x in "MAFDCV"]),
        (Abi("riscv", 32, "little", "rv32i_zba_zbb"), ["RISCV_B"]),
        (Abi("riscv", 32, "little", "rv32i_xvendor"), ["OTHER"]),
        (Abi("x86-64", 64, "little"), []),
    ],
)
def test_capabilities_of_code(abi, expected):
    assert names(capabilities(abi)) == expected


def test_the_numbers_are_those_of_the_c_headers():
    """Capabilities, layouts, magic numbers: opwest/bundle_format.h."""
    text = (HEADERS / "bundle_format.h").read_text()
    listed = re.findall(r"^#define OPWEST_BUNDLE_CPU_(\w+) +(0x[0-9a-f]+)U", text, re.MULTILINE)
    assert len(listed) == 20
    assert {name: int(value, 16) for name, value in listed} == {
        name: 1 << bit for bit in range(32) for name in names(1 << bit) if not name.startswith("0x")
    }
    assert names(OTHER | 1 << 11 | 1 << 25) == ["0x800", "0x2000000", "OTHER"]


def test_names_of_machines_and_float_abis():
    """Machines as in `opwest inspect` of objects; float ABIs in the order of opwest/model.h."""
    for number, name in ((40, "arm"), (62, "x86-64"), (243, "riscv"), (94, "xtensa"), (60_000, "machine-60000")):
        content = replace(CONTENT, abi=CONTENT.abi._replace(machine=number))
        assert as_json("x", unpack(pack(content)))["abi"]["machine"] == name
    text = (HEADERS / "model.h").read_text()
    enumerators = re.findall(r"OPWEST_FLOAT_ABI_(\w+) = (\d),", text.split("enum opwest_float_abi")[1].split("}")[0])
    assert [int(number) for _, number in enumerators] == list(range(len(bundle_format.FLOAT_ABI_NAMES)))
    assert [name.lower() for name, _ in enumerators[1:]] == list(bundle_format.FLOAT_ABI_NAMES[1:])


@pytest.mark.usefixtures("digits_objects")
def test_the_interface_hash_is_that_of_its_text():
    ((model, _plan),) = check([DIGITS], Diagnostics())
    text = "input image int8 [1, 8, 8, 1] [1.0] [0] -1\noutput label int32 [1] [] [] -1\n"
    assert interface_text(model) == text
    assert interface_hash(model) == int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def key_of(number):
    need("cryptography")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32)


def raw_key(number):
    return key_of(number).public_key().public_bytes_raw()


def keys(folder, *numbers):
    """Return files with the private keys of fixed seeds; their public keys are in files beside them."""
    found = []
    for number in numbers:
        key = key_of(number)
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

        found.append(folder / f"key{number}.pem")
        found[-1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        (folder / f"public{number}.pem").write_bytes(public)
    return found


def test_signatures_are_made_added_and_verified(tmp_path, capsys):
    first, second = keys(tmp_path, 1, 2)
    plain, once, twice = (tmp_path / f"{name}.bundle" for name in ("plain", "once", "twice"))
    plain.write_bytes(pack(CONTENT))
    assert main(["bundle", str(plain), "--key", str(first), "-o", str(once)]) == 0
    assert main(["bundle", str(once), "--key", str(second), "--key", str(first), "-o", str(twice)]) == 0
    found = unpack(twice.read_bytes())
    assert found.signed == plain.read_bytes()
    assert {one.key for one in found.signatures} == {hashlib.sha512(raw_key(n)).digest()[:8] for n in (1, 2)}
    changed = tmp_path / "changed.bundle"
    changed.write_bytes(damaged(260, bytes([found.data[260] ^ 1]), found.data))
    for path, code, message in (
        (twice, 0, "digits 1.2.515: valid signature by"),
        (once, 1, "no valid signature by one of the keys"),
        (plain, 1, "the bundle has no signature"),
        (changed, 1, "no valid signature"),
    ):
        capsys.readouterr()
        assert main(["bundle", str(path), "--verify", "--public-key", str(tmp_path / "public2.pem")]) == code
        assert message in capsys.readouterr()[code]


def test_at_most_four_signatures(tmp_path, capsys):
    plain = tmp_path / "plain.bundle"
    plain.write_bytes(pack(CONTENT))
    words = [word for key in keys(tmp_path, 1, 2, 3, 4, 5) for word in ("--key", str(key))]
    assert main(["bundle", str(plain), *words, "-o", str(tmp_path / "x")]) == 1
    assert "the bundle would have 5 signatures" in capsys.readouterr().err


def test_openssl_verifies_the_signature(tmp_path):
    """Another implementation of Ed25519."""
    need("cryptography", "openssl")
    (key,) = keys(tmp_path, 7)
    made = tmp_path / "x.bundle"
    (tmp_path / "signed").write_bytes(pack(CONTENT))
    assert main(["bundle", str(tmp_path / "signed"), "--key", str(key), "-o", str(made)]) == 0
    (tmp_path / "value").write_bytes(unpack(made.read_bytes()).signatures[0].value)
    words = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", "public7.pem", "-rawin", "-in", "signed"]
    done = subprocess.run([*words, "-sigfile", "value"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_export_key_prints_c(tmp_path, capsys):
    keys(tmp_path, 3)
    for name in ("key3.pem", "public3.pem"):
        assert main(["bundle", "--export-key", str(tmp_path / name)]) == 0
        words = capsys.readouterr().out.split("*/")[1].translate(str.maketrans("{},", "   ")).split()
        assert bytes(int(word, 16) for word in words) == raw_key(3)


def test_inspect_prints_every_field(tmp_path, capsys):
    path = tmp_path / "x.bundle"
    path.write_bytes(with_signatures(pack(CONTENT), [SIGNATURE]))
    assert main(["inspect", str(path), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["result"]
    assert row["abi"]["cpu"] == ["ARMV7M", "ARM_DSP", "ARM_FP_SINGLE"]
    assert row["abi"]["layout"] == ["steps", "short enums"]
    assert row["slot_address"] == 0x1_0008_0000
    assert row["sbom"] == ["line é"]
    assert row["signatures"] == [{"algorithm": "Ed25519", "key": SIGNATURE.key.hex(), "value": "00" * 64}]
    assert main(["inspect", str(path)]) == 0
    text = capsys.readouterr().out
    parts = ("digits 1.2.515", "slot 0x100080000", "0x1122334455667788", "640 bytes, aligned to 8", "float ABI: hard")
    assert all(part in text for part in parts), text
    assert re.findall(r"^  (\S[^:]*): ", text, re.MULTILINE) == [
        *("model", "format", "kind", "size", "image", "model hash", "interface hash"),
        *("machine", "processor", "layout", "metadata", "inputs", "outputs", "workspace", "pools", "devices"),
    ]
    assert main(["inspect", str(path), "--target", "cortex-m3"]) == 1
    assert "--target has no effect on a bundle" in capsys.readouterr().err
    path.write_bytes(path.read_bytes()[:300])
    assert main(["inspect", str(path)]) == 1
    assert "12 bytes follow the signed part" in capsys.readouterr().err


@pytest.mark.slow
def test_equal_inputs_give_equal_bytes(tmp_path):
    need("cc")
    source = EXAMPLES / "vibration"
    other = Path(shutil.copytree(source, tmp_path / "elsewhere"))
    made = [bundle(folder / "manifest.yaml", "i386", HOST_SLOT, steps=False) for folder in (source, source, other)]
    assert made[0].signed == made[1].signed == made[2].signed

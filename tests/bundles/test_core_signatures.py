# SPDX-License-Identifier: Apache-2.0
"""Ed25519 and SHA-512 of the core, against RFC 8032 and the package cryptography."""

import hashlib
import random

import pytest
from bundle_files import PROGRAMS
from c_support import compile_all, execute, run
from core_support import BUNDLE, CORE, INCLUDES, VENDORED, built
from requirements_support import need

pytestmark = [pytest.mark.needs("gcc"), pytest.mark.slow]  # the code of signatures compiles for long
ORDER = 2**252 + 27742317777372353535851937790883648493
"""Of the group (RFC 8032, 5.1)."""
RFC8032 = (
    # public key, message, signature: section 7.1, tests 1 to 3 and SHA(abc)
    (
        *("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", ""),
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24"
        "655141438e7a100b",
    ),
    (
        *("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72"),
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aee"
        "b00d291612bb0c00",
    ),
    (
        *("fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82"),
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28d"
        "c027beceea1ec40a",
    ),
    (
        "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
        "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e"
        "2a9ac94fa54ca49f",
        "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17a"
        "d9bef1177331a704",
    ),
)


def verify(rows):
    """Verify triples of key, signature and message; compares the SHA-512 of the messages, too."""
    program = built("signatures", ["signatures"])
    text = "".join(f"{key.hex()} {value.hex()} {message.hex() or '-'}\n" for key, value, message in rows)
    done = execute(program, text=text)
    assert done.returncode == 0, done.stderr
    answers = [line.split() for line in done.stdout.splitlines()]
    assert [digest for _, digest in answers] == [hashlib.sha512(message).hexdigest() for *_, message in rows]
    return [valid == "1" for valid, _ in answers]


def flipped(data, bit):
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_vectors_of_rfc_8032():
    rows = [(bytes.fromhex(key), bytes.fromhex(value), bytes.fromhex(message)) for key, message, value in RFC8032]
    assert verify(rows) == [True] * len(rows)


def test_every_flipped_bit_is_refused():
    [key, value, message] = (bytes.fromhex(RFC8032[2][part]) for part in (0, 2, 1))
    rows = [(flipped(key, bit), value, message) for bit in range(256)]
    rows += [(key, flipped(value, bit), message) for bit in range(512)]
    rows += [(key, value, flipped(message, bit)) for bit in range(16)]
    rows += [(key, value, message + b"\0"), (key, value, message[:-1]), (key, value, b"")]
    assert not any(verify(rows))


def test_signatures_of_cryptography_at_every_size():
    need("cryptography")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    choice = random.Random(17)
    sizes = [*range(300), 1023, 1024, 1025, 4096, 8000]  # all positions in a block of SHA-512
    rows = []
    for size in sizes:
        private = Ed25519PrivateKey.from_private_bytes(choice.randbytes(32))
        message = choice.randbytes(size)
        rows.append((private.public_key().public_bytes_raw(), private.sign(message), message))
    assert all(verify(rows))
    wrong_key = [(rows[i - 1][0], value, message) for i, (_, value, message) in enumerate(rows)]
    assert not any(verify(wrong_key))


def test_scalar_that_is_not_reduced_is_refused():
    """S and S + order satisfy the same equation: RFC 8032 requires the smaller one."""
    rows = []
    for key, message, value in RFC8032:
        point, scalar = bytes.fromhex(value)[:32], int.from_bytes(bytes.fromhex(value)[32:], "little")
        for more in range(1, 15):
            other = scalar + more * ORDER
            if other < 2**256:
                rows.append((bytes.fromhex(key), point + other.to_bytes(32, "little"), bytes.fromhex(message)))
    assert len(rows) > 40
    assert not any(verify(rows))


def test_points_of_small_order():
    """A key of small order accepts signatures of any message: the firmware's author chooses the keys.

    Monocypher multiplies the equation by the cofactor 8, as RFC 8032 allows, so the small-order parts of key and R have
    no effect. Libraries without this multiplication (ref10, OpenSSL) refuse such signatures or accept them by chance.
    They cannot be made for a key of large order without its private key.
    """
    zero = bytes(32)
    small = ((1).to_bytes(32, "little"), (2**255 - 20).to_bytes(32, "little"), zero)  # of order 1, 2 and 4
    assert all(verify([(key, point + zero, b"any") for key in small for point in small]))
    # with a key of large order, a commitment of small order does not help
    key = bytes.fromhex(RFC8032[0][0])
    assert not any(verify([(key, point + zero, b"") for point in small]))


def test_keys_off_the_curve_are_refused():
    """y = 2 has no x on the curve."""
    key, value = bytes.fromhex(RFC8032[0][0]), bytes.fromhex(RFC8032[0][2])
    off = (2).to_bytes(32, "little")
    assert not any(verify([(off, value, b""), (key, off + value[32:], b"")]))


def test_vendored_files_are_those_of_their_packages():
    rows = [line.split("`") for line in (BUNDLE / "ext/README.md").read_text().splitlines() if line.startswith("| `")]
    listed = {row[1]: row[3] for row in rows if len(row) == 5}
    files = {path for path in (BUNDLE / "ext").rglob("*") if path.is_file()}
    own = {"README.md", "export.h", "utils.h", *(f"opwest_{name}" for name in ("sha512.c", "sha512.h", "monocypher.c"))}
    own |= {"opwest_monocypher.h"}
    found = {str(path.relative_to(BUNDLE / "ext")) for path in files if path.name not in own}
    assert found == set(listed) and len(found) == 7
    for name, expected in listed.items():
        assert hashlib.sha256((BUNDLE / "ext" / name).read_bytes()).hexdigest() == expected, name


def test_all_public_names_have_a_prefix(tmp_path):
    """An image can contain the vendored libraries a second time."""
    need("nm")
    sources = [*VENDORED, *CORE]
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2"]
    objects = compile_all(tmp_path, sources, "gcc", flags, INCLUDES)
    assert len(objects) == len(sources)
    names = run(["nm", "--defined-only", "--extern-only", "--format=just-symbols", *objects], tmp_path).split()
    names = [name for name in names if not name.endswith(".o:")]
    assert len(names) > 60
    assert [name for name in names if not name.startswith(("opwest_bundle", "opwest_session"))] == []


def test_psa_back_end_compiles_against_a_stub(tmp_path):
    """Mbed TLS has no pure EdDSA and no PSA header is at hand: the declarations are those of the PSA specification."""
    options = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-Wpedantic", *INCLUDES, f"-I{PROGRAMS / 'psa_stub'}"]
    run(["gcc", *options, "-c", BUNDLE / "src/signature_psa.c"], tmp_path)
    names = run(["nm", "--defined-only", "--extern-only", "--format=just-symbols", "signature_psa.o"], tmp_path).split()
    assert sorted(names) == ["opwest_bundle_ed25519", "opwest_bundle_sha512"]

# SPDX-License-Identifier: Apache-2.0
"""The step of the build that makes a C array of public keys."""

import base64
import re
import subprocess
import sys
from pathlib import Path

import pytest

RUNTIME = Path(__file__).resolve().parents[3] / "zephyr_module"
SCRIPT = RUNTIME / "scripts" / "bundle_keys.py"
PREFIX = bytes.fromhex("302a300506032b6570032100")
# RFC 8410, section 10.1.
BODY = "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE="
PUBLIC = f"-----BEGIN PUBLIC KEY-----\n{BODY}\n-----END PUBLIC KEY-----\n"
KEY = bytes.fromhex("19bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1")


def pem(der, label="PUBLIC KEY"):
    return f"-----BEGIN {label}-----\n{base64.b64encode(der).decode()}\n-----END {label}-----\n"


def written(folder, *texts):
    """Run the script; return its errors, and the files if there are none."""
    files = [folder / f"{index}.pem" for index in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    header, source = folder / "out" / "opwest" / "bundle_keys.h", folder / "out" / "bundle_keys.c"
    header.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, SCRIPT, "--header", header, "--source", source, *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == (1 if done.stderr else 0)
    return done.stderr, header, source


def test_c_array_contains_the_keys_of_all_files(tmp_path):
    other = bytes(range(32))
    errors, header, source = written(tmp_path, PUBLIC, "a comment\n" + pem(PREFIX + other) + pem(PREFIX + other[::-1]))
    assert not errors
    program = tmp_path / "main.c"
    program.write_text(
        "#include <stdio.h>\n#include <opwest/bundle_keys.h>\nint main(void) {\n"
        "for (unsigned i = 0; i < OPWEST_BUNDLE_KEY_COUNT; i++) { for (int j = 0; j < 32; j++)\n"
        '{ printf("%02x", opwest_bundle_keys[i].bytes[j]); } printf("\\n"); } return 0; }\n'
    )
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{RUNTIME / 'include'}", f"-I{header.parents[1]}"]
    subprocess.run(["cc", *flags, program, source, "-o", tmp_path / "main"], check=True)
    printed = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout
    assert printed.split() == [KEY.hex(), other.hex(), other[::-1].hex()]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "found no PEM block"),
        (b"\xff\xfe", "not a text file"),
        (pem(bytes(48), "PRIVATE KEY"), "found a private key: firmware contains only public keys"),
        (pem(bytes(48), "CERTIFICATE"), "found 'CERTIFICATE'"),
        (pem(bytes.fromhex("302a300506032b656e032100") + KEY), "found a public key of another algorithm"),
        (pem(PREFIX + KEY[:-1]), "found a public key of another algorithm"),
        (pem(PREFIX + KEY + b"\0"), "found a public key of another algorithm"),
        (PUBLIC.replace("MCow", "MC*w"), "damaged base64"),
        (PUBLIC + PUBLIC[:-10], "incomplete PEM block"),
        (PUBLIC[:-10] + pem(PREFIX + bytes(32)), "incomplete PEM block"),
        (PUBLIC.replace("END PUBLIC", "END PRIVATE"), "incomplete PEM block"),
    ],
)
def test_other_files_are_refused(tmp_path, text, found):
    errors, header, _ = written(tmp_path, PUBLIC, text)
    assert re.search(rf"1\.pem: error: cannot read '1\.pem': {re.escape(found)}", errors), errors
    assert "expected: a PEM file with Ed25519 public keys" in errors and "0.pem" not in errors
    assert not header.exists()


def test_missing_and_duplicate_files(tmp_path):
    errors, header, _ = written(tmp_path, PUBLIC, PUBLIC)
    assert errors == f"1.pem: error: duplicate key {KEY.hex()}\n" and not header.exists()
    command = [sys.executable, SCRIPT, "--header", tmp_path / "h", "--source", tmp_path / "c", tmp_path / "none"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "error: cannot read 'none': No such file or directory" in done.stderr

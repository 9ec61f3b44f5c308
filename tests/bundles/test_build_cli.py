# SPDX-License-Identifier: Apache-2.0
"""The command `opwest bundle`: options, builds of Zephyr, targets, keys, output."""

import json
from pathlib import Path

import pytest
from bundle_images import DIGITS as MANIFEST_OF_DIGITS
from bundle_images import HOST_SLOT, small_model
from opwest.bundles.format import unpack
from opwest.bundles.libraries import Library
from opwest.bundles.toolchain import machine_options
from opwest.bundles.zephyr_build import _command, _options
from opwest.cli.bundle_actions import MAKE, PERMITTED, SIGN
from opwest.cli.main import main
from opwest.cli.parser import parser
from opwest.model.targets import make_target
from opwest.targets import named_targets
from requirements_support import need, need_x86_64
from test_build_format import CONTENT, keys
from test_build_refusals import GOOD, HEAD, VECTORS, manifest

pytestmark = pytest.mark.usefixtures("digits_objects")
DIGITS = str(MANIFEST_OF_DIGITS)
AT = ["--slot", f"{HOST_SLOT:#x}"]
PARTS = {"DIGITS": [DIGITS], "AT": AT, "X86": [*AT, "--target", "x86-64", "--unsigned", "-o"], "QUOTE": ["'"]}


def split(text: str) -> list[str]:
    """Return the words of a command line, with those of PARTS."""
    return [word for part in text.split() for word in PARTS.get(part, [part])]


def errors(capsys: pytest.CaptureFixture[str], *words: str, status: int = 1) -> list[str]:
    """Run the command, which must fail, and return its errors."""
    assert main(["bundle", *words, "--json"]) == status
    rows = json.loads(capsys.readouterr().out)["diagnostics"]
    return [row["message"] for row in rows if row["severity"] == "error"]


def test_a_bundle_with_headers_and_dependencies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need("cc", "cryptography")
    need_x86_64()
    (key,) = keys(tmp_path, 1)
    output, depfile = tmp_path / "x.bundle", tmp_path / "x.bundle.d"
    words = ["bundle", *split(f"DIGITS AT --target x86-64 --key {key} --model-version 1.2.3 -o {output}")]
    assert main([*words, "--header", str(tmp_path / "include"), "--depfile", str(depfile), "--vectors", "3"]) == 0
    assert "digits 1.2.3 for the slot at 0x10000000" in (text := capsys.readouterr().out)
    assert "3 golden vectors, 1 signature" in text
    found = unpack(output.read_bytes())
    assert found.content.version == (1, 2, 3)
    header = (tmp_path / "include" / "digits_bundle.h").read_text()
    assert f"#define DIGITS_BUNDLE_INTERFACE UINT64_C(0x{found.content.interface_hash:016x})" in header
    assert (tmp_path / "include" / "digits.h").is_file()
    assert DIGITS in depfile.read_text()
    assert depfile.read_text().startswith(str(output))
    stamp = (tmp_path / "include" / "digits.h").stat().st_mtime_ns
    assert main([*words, "--header", str(tmp_path / "include"), "--vectors", "3"]) == 0
    assert output.read_bytes() == found.data
    assert (tmp_path / "include" / "digits.h").stat().st_mtime_ns == stamp


def test_a_version_is_recommended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need("cc")
    need_x86_64()
    words = ["bundle", DIGITS, *AT, "--target", "x86-64", "--unsigned", "-o", str(tmp_path / "x")]
    assert main(words) == 0
    assert "the version of the model is 0.0.0" in capsys.readouterr().err


WRONG = {
    "": ["no file is given"],
    "DIGITS": [
        "no output is given",
        "no slot is given",
        "no key is given: firmware refuses a bundle without a signature",
    ],
    "DIGITS AT --llext --unsigned --key k -o x --public-key p --model-version 1.2": [
        "--public-key requires --verify",
        "--llext excludes --slot: LLEXT places the image",
        "--unsigned excludes --key",
        "--model-version: invalid version '1.2'",
    ],
    "DIGITS X86 x --model-version 256.0.0": ["--model-version: invalid version '256.0.0'"],
    "DIGITS AT -o x --key k --key k --key k --key k --key k": ["5 keys are given"],
    "DIGITS AT -o x --unsigned": ["model digits has objects for several targets: x86-64, i386, cortex-m3, cortex-m4"],
    "DIGITS AT -o x --unsigned --target cortex-m33": ["--target: model digits has no objects for 'cortex-m33'"],
    "DIGITS AT -o x --unsigned --variant v": ["--variant: unknown variant 'v'"],
    "DIGITS AT -o x --unsigned --target cortex-m3 --cc no-such-gcc": [
        "C compiler 'no-such-gcc' of target 'cortex-m3' not found"
    ],
    "DIGITS AT -o x --unsigned --target cortex-m3 --cc QUOTE": ["cannot parse --cc: No closing quotation"],
}


@pytest.mark.parametrize(("words", "expected"), WRONG.items())
def test_wrong_options(words: str, expected: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    found = errors(capsys, *split(words))
    if "aarch64-host" in "".join(found):  # its objects are built by another test
        found = [message.replace(", aarch64-host", "") for message in found]
    assert found == expected


def test_sources_need_a_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(manifest(tmp_path, GOOD))
    for words, message in (
        ("", "the operators of model small are sources: the processor is not known"),
        ("--target cortex-m34", "--target: unknown target 'cortex-m34'"),
        ("--target cortex-a53", "no default compiler for machine aarch64 of target 'cortex-a53'"),
    ):
        assert errors(capsys, path, *split(f"AT -o x --unsigned {words}")) == [message]


def test_a_slot_that_is_too_small(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need("cc")
    need_x86_64()
    words = [DIGITS, "--slot", f"{HOST_SLOT:#x}:4K", "--target", "x86-64", "--unsigned", "-o", str(tmp_path / "x")]
    (message,) = errors(capsys, *words)
    assert message.startswith("the bundle has ")
    assert message.endswith(" bytes, its slot 4096")
    assert not (tmp_path / "x").exists()


def test_options_without_effect_on_a_bundle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from opwest.bundles.format import pack

    path = tmp_path / "x.bundle"
    path.write_bytes(pack(CONTENT))
    assert errors(capsys, str(path)) == ["a bundle is given: nothing to do"]
    assert errors(capsys, str(path), "--verify", "--slot", "0", "--steps", "-o", "y") == [
        "--output has no effect with --verify",
        "--slot has no effect with --verify",
        "--steps has no effect with --verify",
        "--verify requires --public-key",
    ]
    assert errors(capsys, str(path), "--key", "k", "--slot", "0", "--unsigned", "--public-key", "p") == [
        "--slot has no effect on a bundle",
        "--unsigned has no effect on a bundle",
        "no output is given",
        "--public-key requires --verify",
    ]
    assert errors(capsys, str(path), "-o", "y") == ["no key is given"]


def test_every_option_belongs_to_an_action() -> None:
    command = next(one for one in parser()._actions if isinstance(one.choices, dict)).choices["bundle"]
    output = {"help", "file", "json", "color", "quiet", "verbose"}
    known = {name for names in PERMITTED.values() for name in names} | set(PERMITTED) - {MAKE, SIGN}
    assert {action.dest for action in command._actions} - output == known


WITHOUT_EFFECT = {
    "--export-key absent -o f --verify --slot z": [
        "cannot read the key: No such file or directory",
        *(f"--{name} has no effect with --export-key" for name in ("output", "slot", "verify")),
    ],
    "DIGITS --export-key absent": [
        "cannot read the key: No such file or directory",
        f"'{DIGITS}' has no effect with --export-key",
    ],
    "--list --serial x --slot z --unsigned --key k --no-build": [
        *(f"--{name} has no effect with --list" for name in ("slot", "key", "unsigned")),
        "--no-build requires --board",
    ],
    "--check-steps --serial x --steps --variant v": [
        "--steps has no effect with --check-steps",
        "--variant requires a manifest",
    ],
    "--install x --verify --serial x": ["--verify has no effect with --install"],
    "DIGITS AT -o x --unsigned --serial x --timeout 3": [
        f"--{name} requires --install, --list, --confirm, --roll-back or --check-steps"
        for name in ("serial", "timeout")
    ],
}


@pytest.mark.parametrize(("words", "expected"), WITHOUT_EFFECT.items())
def test_options_without_effect(words: str, expected: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    need("cryptography")
    assert errors(capsys, *split(words)) == expected


def test_a_manifest_cannot_be_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need("cryptography")
    keys(tmp_path, 1)
    words = ["--verify", "--public-key", str(tmp_path / "public1.pem")]
    assert errors(capsys, DIGITS, *words) == ["not a bundle: the file does not begin with 'OPWB'"]


def test_faults_of_several_options_are_reported_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need("cryptography")
    words = ["--slot", "0x10:16", "--target", "cortex-m34", "--key", str(tmp_path / "absent"), "-o", "x"]
    expected = {
        "--slot: address 0x10 is misaligned",
        "--slot: the slot has 16 bytes",
        "cannot read the key: No such file or directory",
    }
    path = str(manifest(tmp_path, GOOD))
    assert set(errors(capsys, path, *words)) == {*expected, "--target: unknown target 'cortex-m34'"}
    Path(path).write_text("version: 1\n")
    assert {*expected, "missing key 'model' in the manifest"} < set(errors(capsys, path, *words))


@pytest.mark.parametrize(
    ("slot", "end"), [("0x100000000", None), ("0xffffffc0", None), ("0xfffff000:8K", 0x100001000), (f"{1 << 70}", None)]
)
def test_a_slot_after_the_last_address(
    slot: str, end: int | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need("arm-none-eabi-gcc")
    words = ["--slot", slot, "--target", "cortex-m3", "--unsigned", "-o", str(tmp_path / "x")]
    (message,) = errors(capsys, str(manifest(tmp_path, GOOD)), *words)
    assert message.startswith(f"--slot: the slot at 0x{int(slot.split(':')[0], 0):x} ends at 0x")
    assert end is None or message.endswith(f" ends at 0x{end:x}")


def test_an_image_that_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    need("cc")
    need_x86_64()
    path = str(manifest(tmp_path, GOOD))
    monkeypatch.setattr("opwest.bundles.linked.DESCRIPTOR", "absent")
    assert errors(capsys, path, *AT, "--target", "x86-64", "--unsigned", "-o", str(tmp_path / "x")) == [
        "cannot use an object of the image: the image has no symbol 'absent'"
    ]


def test_unusable_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need("cryptography")
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    other, secret, text, long = (tmp_path / f"{name}.pem" for name in ("other", "secret", "text", "long"))
    curve = ec.generate_private_key(ec.SECP256R1())
    other.write_bytes(curve.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    own = Ed25519PrivateKey.from_private_bytes(bytes(32))
    secret.write_bytes(own.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"x")))
    text.write_text("no key")
    long.write_bytes(bytes(1 << 17))
    target = ["--target", "x86-64"]
    words = [*target, *(word for key in (other, secret, text, tmp_path / "absent") for word in ("--key", str(key)))]
    assert sorted(errors(capsys, DIGITS, *AT, "-o", "x", *words)) == [
        "a private key of another algorithm",
        "cannot read the key: No such file or directory",
        "not a private key in PEM",
        "the private key is encrypted",
    ]
    assert errors(capsys, DIGITS, *AT, "-o", "x", *target, "--key", str(long)) == [
        "the file of a key has more than 65536 bytes"
    ]
    for key in (other, secret, text):
        assert errors(capsys, "--export-key", str(key)) == ["not a key of Ed25519 in PEM"]


def test_cryptography_is_optional(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "cryptography", None)
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric.ed25519", None)
    assert main(["bundle", DIGITS, *AT, "--key", str(tmp_path / "k"), "-o", "x"]) == 1
    text = capsys.readouterr().err
    assert "signatures require the package 'cryptography', which is not installed" in text
    assert 'pip install "cryptography>=42"' in text


def zephyr_build(folder: Path, config: str, command: str = "cc", more: str = "") -> Path:
    """Write the files of a build that are read; return its directory."""
    (folder / "zephyr").mkdir(parents=True)
    (folder / "zephyr" / ".config").write_text(config)
    (folder / "autoconf.h").write_text("#define CONFIG_OPWEST_PROFILE 1\n#define CONFIG_MARK 1\n")
    words = f"ccache {command} -DKERNEL -I{folder} -imacros {folder}/autoconf.h -O2 -std=gnu11 -g -Wall {more}"
    words += " -MD -MF x.d -o CMakeFiles/app.dir/main.c.obj -c main.c"
    other = {"directory": str(folder), "file": "other.c", "command": "cc -O3 -c other.c"}
    row = {"directory": str(folder), "file": str(folder / "main.c"), "command": words}
    (folder / "compile_commands.json").write_text(json.dumps([other, row]))
    return folder


def test_the_compiler_and_the_options_of_a_build(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need("cc")
    need_x86_64()
    build = zephyr_build(
        tmp_path / "build", "CONFIG_ARCH_POSIX=y\nCONFIG_64BIT=y\n# CONFIG_X is not set\n", more="-m64 -flto"
    )
    # A macro of the configuration, and a header of a module of the firmware.
    source = GOOD.replace("b[0]", "b[CONFIG_MARK - MY_NPU]").replace("#inc", "#include <my_npu.h>\n#inc")
    (build / "my_npu.h").write_text("#define MY_NPU 1\n")
    path = manifest(tmp_path, source)
    words = ["bundle", str(path), *AT, "--build", str(build), "--unsigned", "--model-version", "1.0.0", "-o"]
    assert main([*words, str(tmp_path / "x")]) == 0
    assert unpack((tmp_path / "x").read_bytes()).content.abi.machine == 62
    capsys.readouterr()
    assert main(["bundle", DIGITS, *words[2:], str(tmp_path / "y")]) == 0
    sbom = unpack((tmp_path / "y").read_bytes()).content.sbom
    assert sbom.count("\n") == 1
    assert " operators.o " in sbom


def test_builds_that_do_not_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build = zephyr_build(tmp_path / "riscv", "CONFIG_RISCV=y\n")
    path = manifest(tmp_path, GOOD)
    for words, message in (
        (f"DIGITS --build {tmp_path}", "cannot read the file of the build: No such file or directory"),
        (f"DIGITS --build {build}", "model digits has objects for no target of the build"),
        (f"{path} --build {build} --cc QUOTE", "cannot parse --cc: No closing quotation"),
        (f"DIGITS --build {build} --target m3", "--target: model digits has no objects for 'm3'"),
        (
            f"{path} --build {build} --target cortex-m3",
            "--target has no effect with --build: the operators are sources",
        ),
    ):
        assert errors(capsys, *split(f"{words} AT -o x --unsigned")) == [message]
    words = split(f"{path} AT -o x --unsigned --build {build}")
    (build / "compile_commands.json").write_text("[]")
    assert errors(capsys, *words) == ["no compilation of a C source of Zephyr in the commands of the build"]
    (build / "compile_commands.json").write_text("{")
    assert errors(capsys, *words)[0].startswith("cannot read the commands of the build")


def test_the_variant_of_a_build(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need("arm-none-eabi-gcc")
    text = HEAD.format(objects="  - {files: [one.c]}\n", more="") + VECTORS
    text += "targets:\n  marked: {machine: arm, bits: 32, kconfig: {CONFIG_MARKED: y}}\nvariants:\n"
    for name, target in (("wide", "cortex-m3"), ("again", "marked"), ("narrow", "cortex-m4")):
        text += f"  {name}: {{targets: [{target}], objects: [{{files: [{name}.c]}}]}}\n"
    small_model(tmp_path, text, {f"{name}.c": GOOD for name in ("one", "wide", "again", "narrow")})
    words = [str(tmp_path / "manifest.yaml"), *AT, "-o", str(tmp_path / "x"), "--unsigned", "--build"]
    compiler = "arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb"
    both = zephyr_build(tmp_path / "both", "CONFIG_CPU_CORTEX_M3=y\nCONFIG_MARKED=y\n", compiler)
    narrow = zephyr_build(tmp_path / "narrow", "CONFIG_CPU_CORTEX_M4=y\n", compiler)
    assert errors(capsys, *words, str(both)) == ["the build matches several variants: wide, again"]
    assert main(["bundle", *words, str(narrow)]) == 0
    assert " narrow.c " in unpack((tmp_path / "x").read_bytes()).content.sbom
    assert main(["bundle", *words, str(both), "--variant", "again"]) == 0
    assert " again.c " in unpack((tmp_path / "x").read_bytes()).content.sbom


def test_options_of_a_compile_command() -> None:
    text = "gcc -mcpu=cortex-m3 -I a -isystem b -imacros c.h -Dx=1 -Os -g -flto -Wall -fno-pic -fPIC -MF d -o e -c f.c"
    machine, options = _options([*text.split()[1:], "--sysroot=/x", "--param=min-pagesize=0", "-fmacro-prefix-map=a=b"])
    assert machine == ["-mcpu=cortex-m3", "--sysroot=/x"]
    assert options == [*"-I a -isystem b -imacros c.h -Dx=1 -Os -fno-pic".split(), "--param=min-pagesize=0"]


@pytest.mark.parametrize("rows", [None, {}, [1], [{"file": "a.c"}], [{"file": "a.c", "command": "'"}], [{"file": 3}]])
def test_damaged_commands(rows: object) -> None:
    assert _command(rows) is None


@pytest.mark.parametrize(
    ("target", "options"),
    [
        ("cortex-m0", "-mcpu=cortex-m0 -mthumb -mfloat-abi=soft"),
        ("cortex-m4f-softfp", "-mcpu=cortex-m4 -mthumb -mfloat-abi=softfp"),
        ("cortex-m7f", "-mcpu=cortex-m7+nofp.dp -mthumb -mfloat-abi=hard"),
        ("cortex-m7f-double", "-mcpu=cortex-m7 -mthumb -mfloat-abi=hard"),
        ("cortex-m55f", "-mcpu=cortex-m55+nomve -mthumb -mfloat-abi=hard"),
        ("cortex-m55f-mvei", "-mcpu=cortex-m55+nomve.fp -mthumb -mfloat-abi=hard"),
        ("cortex-m85", "-march=armv8.1-m.main+dsp -mthumb -mfloat-abi=soft"),
        ("cortex-m85f", "-march=armv8.1-m.main+dsp+fp.dp -mthumb -mfloat-abi=hard"),
        ("cortex-m85f-mve", "-march=armv8.1-m.main+dsp+mve.fp+fp.dp -mthumb -mfloat-abi=hard"),
        ("rv32imc", "-march=rv32imc -mabi=ilp32 -mcmodel=medany"),
        ("rv32imafc", "-march=rv32imafc -mabi=ilp32f -mcmodel=medany"),
        ("rv64gc", "-march=rv64gc -mabi=lp64d -mcmodel=medany"),
        ("i386", "-m32 -msse2 -mfpmath=sse"),
        ("cortex-a53", ""),
    ],
)
def test_options_of_targets(target: str, options: str) -> None:
    assert machine_options(make_target(target, named_targets()[target])) == tuple(options.split())


@pytest.mark.parametrize(
    ("entry", "options"),
    [
        ({"arch": "v8-M.mainline", "float_abi": "hard", "fpu": "single", "dsp": True}, "-march=armv8-m.main+dsp+fp"),
        (
            {"arch": "v8.1-M.mainline", "float_abi": "hard", "fpu": "double", "mve": "float"},
            "-march=armv8.1-m.main+mve.fp+fp.dp",
        ),
        ({"arch": "v7-M", "float_abi": "soft"}, "-march=armv7-m"),
    ],
)
def test_options_of_declared_targets(entry: dict[str, object], options: str) -> None:
    target = make_target("own", {"machine": "arm", "bits": 32, "kconfig": {}, **entry})
    assert machine_options(target)[0] == options


def test_libraries_that_are_no_archives(tmp_path: Path) -> None:
    path = tmp_path / "libx.a"
    for content in (b"", b"!<arch>\n", b"GROUP ( libc.a )", b"!<thin>\n"):
        path.write_bytes(content)
        assert Library(path).member("memcpy") is None


def test_files_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need("cc")
    need_x86_64()
    (tmp_path / "file").write_text("")
    for words, message in (
        (f"{tmp_path}/absent/x", "cannot write the file: No such file or directory"),
        (f"{tmp_path}/x --header {tmp_path}/file", "cannot create the directory: File exists"),
    ):
        assert errors(capsys, *split(f"DIGITS X86 {words}")) == [message]
    assert not list(tmp_path.glob(".*"))

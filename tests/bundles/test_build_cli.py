# SPDX-License-Identifier: Apache-2.0
"""The command `opwest bundle`: options, builds of Zephyr, targets, keys, output."""

import json
import sys
from pathlib import Path

import pytest
from bundle_images import DIGITS as MANIFEST_OF_DIGITS
from bundle_images import HOST_SLOT, need_host, small_model
from opwest.api.bundle import MAKE, PERMITTED, SIGN
from opwest.bundles.format import pack, unpack
from opwest.bundles.toolchain import Library, Toolchain, machine_options
from opwest.bundles.zephyr_build import _command, _options
from opwest.cli.main import main
from opwest.cli.parser import parser
from opwest.model.inputs.targets import make_target
from opwest.objects.targets import named_targets
from requirements_support import need
from test_build_format import CONTENT, key_of, keys
from test_build_refusals import GOOD, HEAD, VECTORS, manifest

pytestmark = pytest.mark.usefixtures("digits_objects")
DIGITS = str(MANIFEST_OF_DIGITS)
AT = ["--slot", f"{HOST_SLOT:#x}"]
PARTS = {"DIGITS": [DIGITS], "AT": AT, "X86": [*AT, "--target", "x86-64", "--unsigned", "-o"], "QUOTE": ["'"]}


def split(text: str) -> list[str]:
    """Return the words of a command line, with those of PARTS."""
    return [word for part in text.split() for word in PARTS.get(part, [part])]


def errors(capsys, *words):
    """Run the command, which must fail, and return its errors."""
    assert main(["bundle", *map(str, words), "--json"]) == 1
    rows = json.loads(capsys.readouterr().out)["diagnostics"]
    return [row["message"] for row in rows if row["severity"] == "error"]


def made(*words):
    """Run the command, which must write a bundle at the end of its words, and return the content of this bundle."""
    assert main(["bundle", *map(str, words)]) == 0
    return unpack(Path(words[-1]).read_bytes()).content


def test_a_bundle_with_headers_and_dependencies(tmp_path, capsys):
    need("cryptography")
    need_host()
    (key,) = keys(tmp_path, 1)
    output, depfile, include = tmp_path / "x.bundle", tmp_path / "x.bundle.d", tmp_path / "include"
    words = ["bundle", *split(f"DIGITS AT --target x86-64 --key {key} --model-version 1.2.3 -o {output}")]
    words += ["--header", str(include), "--vectors", "3"]
    assert main([*words, "--depfile", str(depfile)]) == 0
    text = capsys.readouterr().out
    assert "digits 1.2.3 for the slot at 0x10000000" in text and "3 golden vectors, 1 signature" in text
    found = unpack(output.read_bytes())
    assert found.content.version == (1, 2, 3)
    macro = f"#define DIGITS_BUNDLE_INTERFACE UINT64_C(0x{found.content.interface_hash:016x})"
    assert macro in (include / "digits_bundle.h").read_text()
    assert DIGITS in depfile.read_text()
    assert depfile.read_text().startswith(str(output))
    stamp = (include / "digits.h").stat().st_mtime_ns
    assert main(words) == 0
    assert output.read_bytes() == found.data
    assert (include / "digits.h").stat().st_mtime_ns == stamp


def test_a_version_is_recommended(tmp_path, capsys):
    need_host()
    made(*split(f"DIGITS X86 {tmp_path}/x"))
    assert "the version of the model is 0.0.0" in capsys.readouterr().err


WRONG = {
    "": ["no file is given"],
    "DIGITS": [
        *("no output is given", "no slot is given"),
        "no key is given: firmware refuses a bundle without a signature",
    ],
    "DIGITS AT --llext --unsigned --key k -o x --public-key p --model-version 1.2": [
        "--public-key requires --verify",
        "--slot cannot be used with --llext: LLEXT places the image",
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
def test_wrong_options(words, expected, capsys):
    found = errors(capsys, *split(words))
    if "aarch64-host" in "".join(found):  # its objects are built by another test
        found = [message.replace(", aarch64-host", "") for message in found]
    assert found == expected


def test_sources_need_a_target(tmp_path, capsys):
    path = manifest(tmp_path, GOOD)
    for words, message in (
        ("", "the operators of model small are sources: the processor is not known"),
        ("--target cortex-m34", "--target: unknown target 'cortex-m34'"),
        ("--target cortex-a53", "no default compiler for machine aarch64 of target 'cortex-a53'"),
    ):
        assert errors(capsys, path, *split(f"AT -o x --unsigned {words}")) == [message]


def test_a_slot_that_is_too_small(tmp_path, capsys):
    need_host()
    words = f"DIGITS --slot {HOST_SLOT:#x}:4K --target x86-64 --unsigned -o {tmp_path}/x"
    (message,) = errors(capsys, *split(words))
    assert message.startswith("the bundle has ")
    assert message.endswith(" bytes, its slot 4096")
    assert not (tmp_path / "x").exists()


def test_options_without_effect_on_a_bundle(tmp_path, capsys):
    path = tmp_path / "x.bundle"
    path.write_bytes(pack(CONTENT))
    assert errors(capsys, path) == [f"no action for {path.name!r}"]
    assert errors(capsys, path, *split("--verify --slot 0 --steps -o y")) == [
        *(f"--{name} has no effect with --verify" for name in ("output", "slot", "steps")),
        "--verify requires --public-key",
    ]
    assert errors(capsys, path, *split("--key k --slot 0 --unsigned --public-key p")) == [
        *(f"--{name} has no effect on a bundle" for name in ("slot", "unsigned")),
        "no output is given",
        "--public-key requires --verify",
    ]
    assert errors(capsys, path, "-o", "y") == ["no key is given"]


def test_every_option_belongs_to_an_action():
    command = next(one for one in parser(first="bundle")._actions if isinstance(one.choices, dict)).choices["bundle"]
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
}


@pytest.mark.parametrize(("words", "expected"), WITHOUT_EFFECT.items())
def test_options_without_effect(words, expected, capsys):
    need("cryptography")
    assert errors(capsys, *split(words)) == expected


def test_a_manifest_cannot_be_verified(tmp_path, capsys):
    need("cryptography")
    keys(tmp_path, 1)
    words = ["--verify", "--public-key", str(tmp_path / "public1.pem")]
    assert errors(capsys, DIGITS, *words) == ["not a bundle: the file does not begin with 'OPWB'"]


def test_faults_of_several_options_are_reported_together(tmp_path, capsys):
    need("cryptography")
    words = split(f"--slot 0x10:16 --target cortex-m34 --key {tmp_path}/absent -o x")
    expected = {
        "--slot: address 0x10 is misaligned",
        "--slot: the slot has 16 bytes",
        "cannot read the key: No such file or directory",
    }
    path = manifest(tmp_path, GOOD)
    assert set(errors(capsys, path, *words)) == {*expected, "--target: unknown target 'cortex-m34'"}
    path.write_text("version: 1\n")
    assert {*expected, "missing key 'model' in the manifest"} < set(errors(capsys, path, *words))


@pytest.mark.parametrize(
    ("slot", "end"), [("0x100000000", None), ("0xffffffc0", None), ("0xfffff000:8K", 0x100001000), (f"{1 << 70}", None)]
)
def test_a_slot_after_the_last_address(slot, end, tmp_path, capsys):
    need("arm-none-eabi-gcc")
    words = split(f"--slot {slot} --target cortex-m3 --unsigned -o {tmp_path}/x")
    (message,) = errors(capsys, manifest(tmp_path, GOOD), *words)
    assert message.startswith(f"--slot: the slot at 0x{int(slot.split(':')[0], 0):x} ends at 0x")
    assert end is None or message.endswith(f" ends at 0x{end:x}")


def test_an_image_that_cannot_be_read(tmp_path, capsys, monkeypatch):
    need_host()
    path = manifest(tmp_path, GOOD)
    monkeypatch.setattr("opwest.bundles.image.DESCRIPTOR", "absent")
    message = "cannot use an object of the image: the image has no symbol 'absent'"
    assert errors(capsys, path, *split(f"X86 {tmp_path}/x")) == [message]


def test_unusable_keys(tmp_path, capsys):
    need("cryptography")
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption
    from cryptography.hazmat.primitives.serialization import PrivateFormat as Format

    other, secret, text, long = (tmp_path / f"{name}.pem" for name in ("other", "secret", "text", "long"))
    curve = ec.generate_private_key(ec.SECP256R1())
    other.write_bytes(curve.private_bytes(Encoding.PEM, Format.PKCS8, NoEncryption()))
    secret.write_bytes(key_of(0).private_bytes(Encoding.PEM, Format.PKCS8, BestAvailableEncryption(b"x")))
    text.write_text("no key")
    long.write_bytes(bytes(1 << 17))
    words = split("DIGITS AT -o x --target x86-64")
    given = [word for key in (other, secret, text, tmp_path / "absent") for word in ("--key", key)]
    assert sorted(errors(capsys, *words, *given)) == [
        "a private key of another algorithm",
        "cannot read the key: No such file or directory",
        "not a private key in PEM",
        "the private key is encrypted",
    ]
    assert errors(capsys, *words, "--key", long) == ["the file of a key has more than 65536 bytes"]
    for key in (other, secret, text):
        assert errors(capsys, "--export-key", key) == ["not a key of Ed25519 in PEM"]


def test_cryptography_is_optional(tmp_path, capsys, monkeypatch):
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


def test_the_compiler_and_the_options_of_a_build(tmp_path):
    need_host()
    config = "CONFIG_ARCH_POSIX=y\nCONFIG_64BIT=y\n# CONFIG_X is not set\n"
    build = zephyr_build(tmp_path / "build", config, more="-m64 -flto")
    # A macro of the configuration, and a header of a module of the firmware.
    source = GOOD.replace("b[0]", "b[CONFIG_MARK - MY_NPU]").replace("#inc", "#include <my_npu.h>\n#inc")
    (build / "my_npu.h").write_text("#define MY_NPU 1\n")
    words = split(f"AT --build {build} --unsigned --model-version 1.0.0 -o")
    assert made(manifest(tmp_path, source), *words, tmp_path / "x").abi.machine == 62
    sbom = made(DIGITS, *words, tmp_path / "y").sbom
    assert sbom.count("\n") == 1
    assert " operators.o " in sbom


def test_builds_that_do_not_fit(tmp_path, capsys):
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


def test_the_variant_of_a_build(tmp_path, capsys):
    need("arm-none-eabi-gcc")
    text = HEAD.format(objects="  - {files: [one.c]}\n", more="") + VECTORS
    text += "targets:\n  marked: {machine: arm, bits: 32, kconfig: {CONFIG_MARKED: y}}\nvariants:\n"
    for name, target in (("wide", "cortex-m3"), ("again", "marked"), ("narrow", "cortex-m4")):
        text += f"  {name}: {{targets: [{target}], objects: [{{files: [{name}.c]}}]}}\n"
    small_model(tmp_path, text, {f"{name}.c": GOOD for name in ("one", "wide", "again", "narrow")})
    words = split(f"{tmp_path}/manifest.yaml AT --unsigned --build")
    output = ["-o", tmp_path / "x"]
    compiler = "arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb"
    both = zephyr_build(tmp_path / "both", "CONFIG_CPU_CORTEX_M3=y\nCONFIG_MARKED=y\n", compiler)
    narrow = zephyr_build(tmp_path / "narrow", "CONFIG_CPU_CORTEX_M4=y\n", compiler)
    assert errors(capsys, *words, both, *output) == ["the build matches several variants: wide, again"]
    assert " narrow.c " in made(*words, narrow, *output).sbom
    assert " again.c " in made(*words, both, "--variant", "again", *output).sbom


def test_options_of_a_compile_command():
    text = "gcc -mcpu=cortex-m3 -I a -isystem b -imacros c.h -Dx=1 -Os -g -flto -Wall -fno-pic -fPIC -MF d -o e -c f.c"
    machine, options = _options([*text.split()[1:], "--sysroot=/x", "--param=min-pagesize=0", "-fmacro-prefix-map=a=b"])
    assert machine == ["-mcpu=cortex-m3", "--sysroot=/x"]
    assert options == [*"-I a -isystem b -imacros c.h -Dx=1 -Os -fno-pic".split(), "--param=min-pagesize=0"]
    levels = [Toolchain(("gcc",), (), tuple(options)).optimisation(key) for key in ("speed", "size", "application")]
    assert levels == [("-O2",), ("-Os",), ()]
    assert Toolchain(("gcc",), (), (*options, "-Og")).optimisation("speed") == ()
    riscv = [Toolchain((name,), ("-march=rv32imac",)) for name in ("riscv64-unknown-elf-gcc", "clang-19")]
    assert [chain.optimisation("speed") for chain in riscv] == [("-O2", "-fno-schedule-insns"), ("-O2",)]
    assert riscv[0].optimisation("size") == ("-Os",)


@pytest.mark.parametrize("rows", [None, {}, [1], [{"file": "a.c"}], [{"file": "a.c", "command": "'"}], [{"file": 3}]])
def test_damaged_commands(rows):
    assert _command(rows) is None


@pytest.mark.parametrize(
    ("target", "options"),
    [
        ("cortex-m0", "-mcpu=cortex-m0 -mthumb -mfloat-abi=soft"),
        ("cortex-m4f-softfp", "-mcpu=cortex-m4 -mthumb -mfloat-abi=softfp"),
        ("cortex-m7f", "-mcpu=cortex-m7+nofp.dp -mthumb -mfloat-abi=hard -DCONFIG_CPU_CORTEX_M7=1"),
        ("cortex-m7f-double", "-mcpu=cortex-m7 -mthumb -mfloat-abi=hard -DCONFIG_CPU_CORTEX_M7=1"),
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
def test_options_of_targets(target, options):
    assert machine_options(make_target(target, named_targets()[target])) == tuple(options.split())


HARD = {"float_abi": "hard"}


@pytest.mark.parametrize(
    ("entry", "options"),
    [
        ({"arch": "v8-M.mainline", "fpu": "single", "dsp": True} | HARD, "-march=armv8-m.main+dsp+fp"),
        ({"arch": "v8.1-M.mainline", "fpu": "double", "mve": "float"} | HARD, "-march=armv8.1-m.main+mve.fp+fp.dp"),
        ({"arch": "v7-M", "float_abi": "soft"}, "-march=armv7-m"),
    ],
)
def test_options_of_declared_targets(entry, options):
    target = make_target("own", {"machine": "arm", "bits": 32, "kconfig": {}, **entry})
    assert machine_options(target)[0] == options


def test_libraries_that_are_no_archives(tmp_path):
    path = tmp_path / "libx.a"
    for content in (b"", b"!<arch>\n", b"GROUP ( libc.a )", b"!<thin>\n"):
        path.write_bytes(content)
        assert Library(path).member("memcpy") is None


def test_files_that_cannot_be_written(tmp_path, capsys):
    need_host()
    (tmp_path / "file").write_text("")
    for words, message in (
        (f"{tmp_path}/absent/x", "cannot write the file: No such file or directory"),
        (f"{tmp_path}/x --header {tmp_path}/file", "cannot create the directory: File exists"),
    ):
        assert errors(capsys, *split(f"DIGITS X86 {words}")) == [message]
    assert not list(tmp_path.glob(".*"))

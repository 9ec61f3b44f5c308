# SPDX-License-Identifier: Apache-2.0
"""What a workspace with the module adds to images: nothing by itself, a service with `-S opwest-service`."""

import importlib
import re
import shutil
import sys

import pytest
from cover import configured
from opwest.runs.connection import RunningImage
from opwest.runs.places import Serial
from opwest.runs.shell import ShellLink
from opwest.runs.smp import SmpLink
from zephyr_support import ROOT, need_smp

pytestmark = pytest.mark.zephyr
NATIVE, AN386 = "native_sim/native/64", "mps2/an386"
MODULE = f"-DEXTRA_ZEPHYR_MODULES={ROOT}"


OPERATOR = """#include <stdint.h>
int32_t add(const int32_t *x, int32_t *y);
int32_t add(const int32_t *x, int32_t *y)
{
	*y = *x + 7;
	return 0;
}
"""
MANIFEST = """version: 1
model: adder
objects: [{files: [add.c]}]
operators:
  add: {args: [{name: x, dtype: int32, shape: [1]}, {name: y, dtype: int32, shape: [1], direction: out}]}
run:
  inputs: {x: {dtype: int32, shape: [1]}}
  outputs: {y: {dtype: int32, shape: [1]}}
  steps: [{call: add, args: [x, y]}]
"""


@pytest.fixture
def manifest(tmp_path):
    (tmp_path / "add.c").write_text(OPERATOR)
    (tmp_path / "manifest.yaml").write_text(MANIFEST)
    return tmp_path / "manifest.yaml"


@configured(board=AN386)
def test_the_module_alone_adds_no_byte(workspace):
    """An absent module and one with CONFIG_OPWEST=n, which is the default, give equal images."""
    sample = workspace.base / "samples" / "hello_world"
    without, off = (workspace.build(sample, AN386, *options) for options in ((), (MODULE, "-DCONFIG_OPWEST=n")))
    contents = [(image.folder / "zephyr" / "zephyr.bin").read_bytes() for image in (without, off)]
    assert contents[0] == contents[1] and len(contents[0]) > 1000
    # An absolute symbol of Zephyr's configs.c for each module, without bytes.
    assert {name for name in off.symbols if "opwest" in name.lower()} <= {"CONFIG_ZEPHYR_OPWEST_MODULE"}
    code, default = workspace.try_build(sample, AN386, MODULE, target="")
    assert code == 0 and default.options == off.options


@configured("board, runtime", [(NATIVE, "vendored"), (AN386, "module"), ("qemu_cortex_m3", "vendored")])
def test_snippet_adds_the_service_to_an_application_without_it(workspace, opwest, manifest, board, runtime, tmp_path):
    """With a copy of the runtime, the installed opwest writes what the application does not contain."""
    if board != NATIVE:
        need_smp(workspace)
    opwest("generate", manifest, "--runtime", runtime, "-o", tmp_path / "app")
    written = [path.name for path in (tmp_path / "app").rglob("*_service.c")]
    assert written == (["adder_service.c"] if runtime == "module" else [])
    options = ["-DSNIPPET=opwest-service", f"-DOPWEST_PYTHON={sys.executable}", "-DQEMU_PTY=ON"]
    built = workspace.build(tmp_path / "app", board, *options, *([MODULE] if runtime == "module" else []))
    assert "CONFIG_OPWEST_SERVICE=y" in built.options
    assert not re.search(r"was assigned the value", built.log), "every value of the snippet has an effect"
    command = [str(built.folder / "zephyr" / "zephyr.exe")]
    if board == AN386:
        command = ["qemu-system-arm", "-M", "mps2-an386", "-nographic", "-monitor", "none", "-serial", "pty"]
        command += ["-kernel", str(built.elf)]
    elif board != NATIVE:
        command = [workspace.west, "build", "-d", str(built.folder), "-t", "run"]
    with RunningImage(command, workspace.base.parent, built.env) as image:
        device = image.device(60)
        link = ShellLink(device, 20) if board == NATIVE else SmpLink(Serial(device), 20)
        try:
            assert [model.name for model in link.describe()] == ["adder"]
        finally:
            link.disconnect()


KCONFIG = """
config MULTITHREADING
	def_bool y
config PSA_CRYPTO_CLIENT
	def_bool y
{symbols}
rsource "bundle/Kconfig"
"""
EDDSA = ("PSA_WANT_ALG_PURE_EDDSA", "PSA_WANT_ECC_TWISTED_EDWARDS_255", "PSA_WANT_ALG_SHA_512")
KEYS = ("PSA_WANT_KEY_TYPE_ECC_PUBLIC_KEY",)


@pytest.mark.parametrize(
    "symbols, is_psa",
    [
        ((*EDDSA, *KEYS, "PSA_CRYPTO_DRIVER_OBERON"), True),
        ((*EDDSA, *KEYS, "PSA_CRYPTO_DRIVER_CRACEN"), True),
        ((*EDDSA, *KEYS, "MBEDTLS_PSA_CRYPTO_C"), False),  # Mbed TLS has no EdDSA
        ((*EDDSA[:2], *KEYS, "PSA_CRYPTO_DRIVER_OBERON"), False),  # no SHA-512
        (("PSA_CRYPTO_DRIVER_OBERON",), False),
        ((), False),
    ],
)
def test_signatures_use_psa_where_a_driver_verifies_them(workspace, monkeypatch, tmp_path, symbols, is_psa):
    monkeypatch.syspath_prepend(str(workspace.base / "scripts" / "kconfig"))
    kconfiglib = importlib.import_module("kconfiglib")
    stubs = "".join(f"config {symbol}\n\tdef_bool y\n" for symbol in symbols)
    shutil.copytree(ROOT / "zephyr_module" / "bundle", tmp_path / "bundle")
    (tmp_path / "Kconfig").write_text(KCONFIG.format(symbols=stubs))
    monkeypatch.setenv("srctree", str(tmp_path))
    configuration = kconfiglib.Kconfig("Kconfig", warn=False)
    configuration.syms["OPWEST_BUNDLE"].set_value("y")
    chosen = configuration.named_choices["OPWEST_BUNDLE_SIGNATURE"].selection.name
    assert chosen == f"OPWEST_BUNDLE_SIGNATURE_{'PSA' if is_psa else 'VENDORED'}"


@configured(board=NATIVE)
def test_errors_of_builds_without_what_the_service_needs(workspace, opwest, manifest, tmp_path):
    """A copy of the runtime and no installed opwest; a model that is off."""
    opwest("generate", manifest, "-o", tmp_path / "app")
    none = "-DOPWEST_PYTHON=/nowhere/python"
    log = workspace.refused(tmp_path / "app", NATIVE, "-DSNIPPET=opwest-service", none, target="")
    assert "this copy of the runtime has no src/" in log and "give the Python that has it (-DOPWEST_PYTHON=)" in log
    log = workspace.refused(tmp_path / "app", NATIVE, "-DCONFIG_OPWEST_MODEL_ADDER=n", target="app")
    assert "adder.h: No such file or directory" in log

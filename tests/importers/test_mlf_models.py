# SPDX-License-Identifier: Apache-2.0
"""Model Library Format in every variant: imported, compiled here, compared with numpy."""

import json
import struct
import subprocess

import mlf_made as made
import mlf_mains as mains
import numpy as np
import pytest
from importers_support import ROOT, Built, generated, linked, output_of, planned
from mlf_made import HEADER, LIB0, LIB1, changed, imported
from opwest.base.diagnostics import OpwestError
from opwest.frontends.mlf import Options, import_mlf
from opwest.frontends.mlf.draft import TensorOption

X = np.array([[1, -2, 3, 0.5]], np.float32)
INPUTS = [np.linspace(-2, 2, 4, dtype=np.float32).reshape(1, 4) * k for k in (-1.5, -0.1, 0, 0.3, 1, 7)]
VARIANTS = {
    "usmp_v7": made.usmp(),
    "usmp_v6": made.usmp(version=6),
    "usmp_v5": made.usmp(version=5),
    "usmp_bare": made.usmp(bare=True),
    "workspace_v6": made.workspace(),
    "workspace_v5_old": made.workspace(version=5, old=True),
    "packed": made.packed(),
    "packed_data": made.packed(shapes=False),
    "packed_checked": made.packed(checked=True),
    "graph": made.graph(),
}
SAID = {"usmp_bare": {"x": TensorOption(None, (1, 4)), "y": TensorOption(None, (1, 2))}}


@pytest.mark.needs("cc")
@pytest.mark.parametrize("variant", VARIANTS)
def test_results_equal_numpy(variant, tmp_path):
    imported(VARIANTS[variant], tmp_path, tensors=SAID.get(variant, {}))
    built = Built(tmp_path / "mine", tmp_path)
    results = built.run([[x] for x in INPUTS])
    for x, [y] in zip(INPUTS, results, strict=True):
        np.testing.assert_allclose(y, made.reference(x), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("variant", VARIANTS)
def test_directory_and_tar_are_the_same(variant, tmp_path):
    imported(VARIANTS[variant], tmp_path, tensors=SAID.get(variant, {}))
    made.unpack(VARIANTS[variant], tmp_path / "unpacked" / "mine.tar")
    import_mlf(tmp_path / "unpacked" / "mine.tar", tmp_path / "other", Options("mine", tensors=SAID.get(variant, {})))

    def content(folder):
        return {p.relative_to(folder): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}

    assert content(tmp_path / "mine") == content(tmp_path / "other")


def kept(files):
    """Return a directory whose main has a loop: it stays one operator."""
    call = "  if (tvmgen_default_fused_dense("
    return changed(files, (call, f"  for (int32_t i = 0; i < 1; ++i){call}"))


def test_static_arrays_become_the_callers(tmp_path):
    done, text = imported(kept(made.usmp()), tmp_path)
    assert done.workspace_bytes == 48  # the array, not metadata.json's 4096
    model, _ = planned(tmp_path / "mine")
    [whole] = [o for o in model.operators if o.name == "whole_model"]
    arguments = {"x": "in", "y": "out", "global_const_workspace": "in", "global_workspace": "scratch"}
    assert [(a.name, a.direction) for a in whole.args] == [*arguments.items()]
    assert "static uint8_t" not in (tmp_path / "mine/operators/default_lib1.c").read_text()
    constants = (tmp_path / "mine/constants/global_const_workspace.bin").read_bytes()
    assert constants[:48] == made.W1.tobytes()
    assert "w2_let float32[6] at 64" in text


def test_inner_operators_are_in_the_registry_with_their_workspace(tmp_path):
    _, text = imported(kept(made.workspace()), tmp_path)
    model, _ = planned(tmp_path / "mine")
    sizes = {o.name: [a.type.size for a in o.args if a.direction != "scratch"][:4] for o in model.operators}
    assert sizes["fused_dense_relu"] == [16, 48, 12, 12]
    assert sizes["fused_dense"] == [12, 24, 8, 8]
    assert text.count("workspace: 32") == 1  # main: its own 12 and an operator's 12, each rounded up to 16
    assert text.count("workspace: 16") == 2


def test_graph_becomes_steps(tmp_path):
    done, text = imported(made.graph(), tmp_path)
    assert done.steps == 4  # two operators, two reshapes that change the shape; the third is a name
    assert "p0: {file: constants.npz, key: p0}" in text
    assert "opwest_reshape_0" in (tmp_path / "mine/operators/reshape.c").read_text()


def test_device_is_marked_to_fill_in(tmp_path):
    done, text = imported(kept(made.usmp(device=True)), tmp_path)
    assert "handle: {type: FILL_IN, header: FILL_IN, expression: FILL_IN}" in text
    assert "symbol: TVMDeviceNpuActivate" in text
    assert any("TVMDeviceNpuActivate" in w for w in done.warnings)
    with pytest.raises(OpwestError, match=r"handle\.type' is not filled in"):
        planned(tmp_path / "mine")


def test_cmsis_nn_is_linked_and_its_errors_are_returned(tmp_path):
    done, text = imported(made.cmsis_nn(), tmp_path)
    source = (tmp_path / "mine/operators/default_lib2.c").read_text()
    assert "switch (status)" in source and "!status" not in source
    assert any("replaced by `switch (status)` (count: 1)" in r for r in done.remarks)
    assert "#if defined(__arm__) && !(defined(__ARM_FEATURE_DSP) && !defined(__ARM_FEATURE_MVE))" in source
    assert "kconfig: CONFIG_CMSIS_NN_SOFTMAX" in text and "CONFIG_CMSIS_NN: y" in text
    assert "#error" not in (tmp_path / "mine/operators/default_lib1.c").read_text()


@pytest.mark.parametrize(
    ("cpu", "condition"),
    [
        ("cortex-m3", "#if defined(__arm__) && !(!defined(__ARM_FEATURE_DSP) && !defined(__ARM_FEATURE_MVE))"),
        ("cortex-m55", "#if !(defined(__ARM_FEATURE_MVE))"),
        ("cortex-m55+nomve", "#if defined(__arm__) && !(defined(__ARM_FEATURE_DSP) && !defined(__ARM_FEATURE_MVE))"),
    ],
)
def test_cmsis_nn_code_requires_its_instruction_set(cpu, condition, tmp_path):
    imported(made.cmsis_nn(cpu), tmp_path)
    assert condition in (tmp_path / "mine/operators/default_lib2.c").read_text()


def test_cmsis_nn_without_a_processor_is_reported(tmp_path):
    done, _ = imported({n: c.replace(b"-mcpu=cortex-m4", b"") for n, c in made.cmsis_nn().items()}, tmp_path)
    assert any("no target specifies the instruction set for its buffers" in w for w in done.warnings)
    assert "#error" not in (tmp_path / "mine/operators/default_lib2.c").read_text()


def with_code(text):
    """Return a directory with more code of operators."""
    files = made.usmp()
    return {**files, LIB1: files[LIB1] + text.encode()}


def test_dsp_intrinsics_require_their_processor(tmp_path):
    files = with_code("static int use(int a, int b)\n{\n  return __SMLAD(a, b, 0);\n}\n")
    done, _ = imported(files, tmp_path)
    assert any("__SMLAD" in r and "DSP extension" in r for r in done.remarks)
    source = (tmp_path / "mine/operators/default_lib1.c").read_text()
    assert "#if !defined(__ARM_FEATURE_DSP)\n#error" in source and "#else\n#include <cmsis_compiler.h>" in source


def test_unknown_library_is_named(tmp_path):
    call = ("  return 0;", "  esp_dl_wrapper(p0);\n  return 0;")
    files = changed(made.usmp(), ("#define TVM_EXPORTS", "#include <esp_kernel.h>\n#define TVM_EXPORTS"), call, count=1)
    done, text = imported(files, tmp_path)
    assert "the operators include <esp_kernel.h>, which is not in a known Zephyr module" in done.warnings
    assert "the operators call esp_dl_wrapper, which is not in a known Zephyr module" in done.warnings
    assert "symbol: esp_dl_wrapper" in text


def test_shifts_beyond_63_bits_are_corrected(tmp_path):
    """(x * m + (1 << (s - 1))) >> s is 0 from s = 63 on, for every x and m of 32 bits."""
    shift = "(int64_t)((x * m) + ((int64_t)1 << ((int64_t)((35 + 31) - 1)))) >> ((int64_t)(35 + 31))"
    far = f"static int64_t far(int64_t x, int64_t m)\n{{\n  return {shift};\n}}\n"
    near = "static int64_t near(int64_t x)\n{\n  return x >> ((int64_t)(8 + 31));\n}\n"
    done, _ = imported(with_code(far + near), tmp_path)
    words = "2 shifts of 64-bit numbers by up to 66 bits, undefined in C, replaced by shifts by 63"
    assert any(words in r for r in done.remarks)
    text = (tmp_path / "mine/operators/default_lib1.c").read_text()
    assert "((int64_t)((32 + 31) - 1))" in text and "((int64_t)(32 + 31))" in text and "((int64_t)(8 + 31))" in text
    for x in (-(1 << 31), -1, 1, (1 << 31) - 1):
        assert (x * ((1 << 31) - 1) + (1 << 62)) >> 63 == 0


def test_shifts_of_channels_beyond_63_bits_have_a_note(tmp_path):
    """Their results are those of TVM's main, which depend on the processor."""
    shift = "(x * m) >> ((int64_t)(((int32_t*)unused_let)[c] + 31))"
    far = f"static int64_t far(int64_t x, int64_t m, int32_t* unused_let, int c)\n{{\n  return {shift};\n}}\n"
    files = mains.usmp()
    files[LIB1] += far.encode()
    for values, listed in (("32, 31", []), ("33, 35", ["2 channels"])):
        members = ("int16_t unused_let[4]", "int32_t unused_let[2]"), ("1, 2, 3, 4\n", f"{values}\n")
        done, _ = imported(changed(files, *members, name=LIB0), tmp_path, f"mine{values[:2]}")
        notes = [r.partition(" with")[0] for r in done.remarks if "undefined in C: their results" in r]
        assert notes == listed
    assert "can differ between processors (unused_let)" in done.remarks[-1]


@pytest.mark.needs("cc")
def test_two_models_of_one_name_in_one_image(tmp_path):
    """Every `default` defines the same functions and headers: renamed, they do not clash."""
    imported(made.usmp(), tmp_path, "one")
    imported(made.workspace(), tmp_path, "two")
    rows = output_of(linked(generated(tmp_path, ("one", "two")), BOTH)).splitlines()
    found = [[float(word) for word in row.split()] for row in rows]
    np.testing.assert_allclose(found, [made.reference(X).ravel()] * 4, rtol=1e-6)
    assert rows[0] == rows[2] and rows[1] == rows[3]  # bit-identical, with the arena of each poisoned between


BOTH = """\
#include <stdio.h>
#include <string.h>
#include <one.h>
#include <two.h>

ONE_WORKSPACE_DEFINE(first);
TWO_WORKSPACE_DEFINE(second);
static const struct one_devices one_context;
static const struct two_devices two_context;

int main(void)
{
	const float x[4] = {1, -2, 3, 0.5f};
	float y[2];
	int rc = one_open(&first, &one_context) | two_open(&second, &two_context);

	for (int round = 0; round < 2; round++) {
		rc |= one_run(&(struct one_inputs){.x = x}, &(struct one_outputs){.y = y}, &first, &one_context);
		printf("%.9g %.9g\\n", y[0], y[1]);
		memset(first.sram, 0xA5 + round, ONE_POOL_SRAM_SIZE);
		rc |= two_run(&(struct two_inputs){.x = x}, &(struct two_outputs){.y = y}, &second, &two_context);
		printf("%.9g %.9g\\n", y[0], y[1]);
		memset(second.sram, 0x5A + round, TWO_POOL_SRAM_SIZE);
	}
	return rc != 0;
}
"""


COMPILED = {"usmp": made.usmp(), "workspace": made.workspace(), "packed": made.packed(), "graph": made.graph()}


@pytest.mark.needs("cc")
@pytest.mark.x86_64
@pytest.mark.parametrize("variant", COMPILED)
def test_compiled_operators(variant, tmp_path):
    """As TVM's LLVM target exports them: an object under lib, and for the C interface the wrapper's source."""
    files = dict(COMPILED[variant])
    source = tmp_path / "code.c"
    source.write_bytes(files.pop(LIB1))
    runtime = [f"-I{ROOT}/zephyr_module/{folder}" for folder in ("include", "include_tvm")]
    flags = ["-O1", "-w", "-fno-stack-protector", "-fno-pic", "-mcmodel=small", "-fcf-protection=none"]
    subprocess.run(["cc", *flags, *runtime, "-c", source, "-o", tmp_path / "code.o"], check=True)
    files["codegen/host/lib/default_lib1.o"] = (tmp_path / "code.o").read_bytes()
    done, text = imported(files, tmp_path)
    assert "objects/x86-64/default_lib1.o" in done.files
    assert "  - target: x86-64\n    files: [objects/x86-64/default_lib1.o]\n" in text
    if variant in ("workspace", "packed"):
        assert "workspace: 4096" in text  # only the upper bound of metadata.json
    if variant != "graph":
        assert (
            "not in the registry, because main is compiled and the sizes of the arguments are not recorded: "
            "tvmgen_default_fused_dense, tvmgen_default_fused_dense_relu. Declare those to call"
        ) in done.remarks
    built = Built(tmp_path / "mine", tmp_path)
    np.testing.assert_allclose(built.run([[X]])[0][0], made.reference(X), rtol=1e-6)


def test_caller_provided_workspaces(tmp_path):
    """With `workspace_pools` in the C interface there is no array: the header has the sizes."""
    array = ("static uint8_t global_workspace[48];\n", "")
    files = changed(kept(made.usmp()), array, ("&global_workspace)", "workspace_pools->sram)"), name=LIB0)
    files[HEADER] += b"struct tvmgen_default_workspace_pools {\n  void* sram;\n};\n"
    files[HEADER] += b"#define TVMGEN_DEFAULT_SRAM_WORKSPACE_POOL_SIZE 64\n"
    done, text = imported(files, tmp_path)
    assert "{name: sram, dtype: uint8, shape: [64], direction: scratch, align: 16}" in text
    bound = "the size of 'sram', 64 bytes, is an upper bound, from the header or metadata.json"
    assert bound in done.remarks
    planned(tmp_path / "mine")


def test_names_of_inputs_from_the_relay_text_alone(tmp_path):
    """Packed arguments, no C interface, and metadata.json of a version without ports."""
    files = {**made.packed(), "metadata.json": made.metadata(5, with_ports=False)}
    with pytest.raises(OpwestError, match="which parameters of 'tvmgen_default___tvm_main__' are inputs"):
        imported({**files, "src/default.relay": b""}, tmp_path)
    _, text = imported({n.replace("default.relay", "relay.txt"): c for n, c in files.items()}, tmp_path)
    assert "x: {dtype: float32, shape: [1, 4]}" in text


def test_includes_of_any_length_cause_no_traceback(tmp_path):
    imported(with_code('#include "' + "x" * 5000 + '.h"\n'), tmp_path)
    planned(tmp_path / "mine")


@pytest.mark.parametrize("linked", [False, True], ids=["params", "linked"])
def test_graph_with_weights_of_bfloat16(linked, tmp_path):
    """TVM writes them with DLPack's code, or into the C code as uint16_t."""
    files = made.graph()
    name = "executor-config/graph/default.graph"
    graph = json.loads(files[name])
    graph["attrs"]["dltype"][1][2] = "bfloat16"
    bits = (made.W1.view(np.uint32) >> 16).astype(np.uint16)
    packed = made.params({"p0": bits})
    unsigned, brain = (struct.pack("<BBH", code, 16, 1) for code in (1, 4))
    assert packed.count(unsigned) == 1
    if linked:
        values = ", ".join(str(n) for n in bits.reshape(-1))
        code = f"static const uint16_t __tvm_param__p0[{bits.size}] = {{\n    {values}\n}};\n".encode()
        files[LIB1] += code
        packed = made.params({})
    files |= {name: json.dumps(graph).encode(), "parameters/default.params": packed.replace(unsigned, brain)}
    _, text = imported(files, tmp_path)
    assert "p0: {file: constants.npz, key: p0, dtype: bfloat16}" in text
    assert "dtype: uint16" not in text
    with np.load(next(tmp_path.rglob("constants.npz"))) as loaded:
        np.testing.assert_array_equal(loaded["p0"], bits)

# SPDX-License-Identifier: Apache-2.0
"""Mains in C as steps: bit-identical to the original main, never with more memory; otherwise one operator."""

import importlib.util
import itertools
import json
import re

import mlf_made as made
import mlf_mains as mains
import pytest
from importers_support import ROOT, generated, linked, output_of, planned
from mlf_made import HEADER, changed, imported
from opwest.base.diagnostics import OpwestError
from opwest.frontends.mlf import Options, import_mlf
from opwest.frontends.mlf.unpack import scratch
from opwest.plan.problem import PoolPlan
from unpacked_support import Real, compared


def without_status():
    """Return the network with an operator that returns void."""
    add = mains.ADD.format(pools=", uint8_t* global_const_workspace_6_var, uint8_t* global_workspace_7_var")
    plain = add.replace("int32_t tvmgen_default_add", "void tvmgen_default_add").replace("  return 0;\n", "")
    call = mains.call("add", "sid_1_let", "sid_2_let", mains.Y)
    ignored = call.replace("if (", "(void)(").replace(" != 0 ) return -1;", ");")
    return changed(mains.usmp(), (add, plain), (call, ignored))


def in_a_loop():
    """Return a network whose operators allocate in a loop."""
    start = "  void* room = TVMBackendAllocWorkspace"
    end = made.return_if("TVMBackendFreeWorkspace(1, 0, room) != 0")
    loop = "  for (int32_t z = 0; z < 1; ++z) {\n"
    return changed(made.workspace(), (start, loop + start), (end, f"{end}  }}\n"))


def compared_plan(files, folder, plan):
    """Compare the import of a directory with its main; expect a plan."""
    result = compared(Real(made.unpack(files, folder / "lib"), Options("mine")), folder, 50)
    assert result.plan == plan
    return result.done


NETWORKS = {
    # Steps, tensors, bytes in TVM's plan and in opwest's.
    "pools": (mains.usmp(), (3, 2, 512, 416)),
    "constants of main": (mains.usmp(constants="main"), (3, 2, 512, 416)),
    "allocations": (mains.allocated(), (6, 5, 544, 416)),
    "no status": (without_status(), (3, 2, 512, 416)),
    "floats": (made.usmp(), (2, 1, 48, 32)),
    "phases": (mains.overlapping(), (4, 3, 416, 416)),
    "allocations at the peak": (made.workspace(), (2, 1, 32, 32)),
    "allocations in a loop": (in_a_loop(), (2, 1, 32, 48)),  # with bookkeeping, as main as one operator
}


@pytest.mark.needs("cc")
@pytest.mark.parametrize("network", NETWORKS)
def test_outputs_are_identical_and_memory_is_not_larger(network, tmp_path):
    files, wanted = NETWORKS[network]
    done = compared_plan(files, tmp_path, wanted)
    assert (done.tvm_workspace_bytes, done.workspace_bytes) == wanted[2:]
    _, memory = planned(tmp_path / "mine")
    assert memory.pools["sram"].size == wanted[3]


def test_phases_are_the_order_of_the_code(tmp_path):
    """Without them, the plan of the steps is larger than TVM's."""
    _, text = imported(mains.overlapping(), tmp_path)
    args = text[text.index("  sums:") : text.index("  add:")].splitlines()[3:7]
    assert args == [
        "      - {name: p0, dtype: int16, shape: [64], phases: [0, 0]}",
        "      - {name: T_out, dtype: int16, shape: [64], direction: out, phases: [2, 2]}",
        "      - {name: sums, dtype: uint8, shape: [256], direction: scratch, align: 16, phases: [1, 1]}",
        "      - {name: padded, dtype: uint8, shape: [160], direction: scratch, align: 16, phases: [0, 2]}",
    ]
    path = tmp_path / "mine/manifest.yaml"
    path.write_text(re.sub(r", phases: \[\d, \d\]", "", text))
    _, memory = planned(path.parent)
    assert memory.pools["sram"].size == 672


@pytest.mark.needs("cc")
def test_a_plan_of_opwest_that_is_larger_is_that_of_tvm(tmp_path, monkeypatch):
    def stacked(blocks, shares, planner):
        ends = list(itertools.accumulate(block.size for block in blocks))
        return PoolPlan(dict(zip((b.name for b in blocks), [0, *ends], strict=False)), ends[-1], 16, 0)

    monkeypatch.setattr(scratch, "plan_blocks", stacked)
    compared_plan(mains.overlapping(), tmp_path, (4, 3, 416, 416))
    imported(mains.allocated(), tmp_path, "allocated")
    for folder, size in (("mine", 416), ("allocated", 544)):
        assert "memory_planner: fixed" in (tmp_path / folder / "manifest.yaml").read_text()
        _, memory = planned(tmp_path / folder)
        assert memory.pools["sram"].size == size
    done, _ = imported(in_a_loop(), tmp_path, "loop")
    assert done.remarks[0] == (
        "main is not unpacked, but one operator: its steps need 80 bytes of memory, with the bookkeeping of "
        "TVMBackendAllocWorkspace in step 0; as one operator it needs 48"
    )


def test_memory_that_an_operator_does_not_use(tmp_path):
    unused = mains.SUMS.replace(
        "  void* sums_let", "  void* unused_let = (&(global_workspace_9_var[64]));\n  void* sums_let"
    )
    _, text = imported(mains.overlapping(unused), tmp_path)
    assert "{name: sums, dtype: uint8, shape: [256], direction: scratch, align: 16, phases: [1, 1]}" in text
    assert "unused_let = (&(sums[64]));" in (tmp_path / "mine/operators/default_lib1.c").read_text()


def test_an_operator_that_another_function_calls_keeps_its_allocations(tmp_path):
    other = "int32_t other(int16_t* p, int16_t* q) {\n  return tvmgen_default_window(p, q);\n}\n"
    start = "TVM_DLL int32_t tvmgen_default___tvm_main__"
    done, text = imported(changed(mains.allocated(), (start, other + start)), tmp_path)
    assert "    workspace: 160\n" in text and (done.steps, done.workspace_bytes) == (6, 432)  # with its bookkeeping
    planned(tmp_path / "mine")


HALF = """\
TVM_DLL int32_t tvmgen_default_half(int16_t* T_out, uint8_t* c, uint8_t* w) {
  for (int32_t i = 0; i < 32; ++i) {
    T_out[i] = (int16_t)i;
  }
  return 0;
}
"""


@pytest.mark.needs("cc")
def test_a_step_that_replaces_a_part_keeps_the_rest(tmp_path):
    window = "  if (tvmgen_default_window"
    steps = mains.STEPS.replace(window, mains.call("half", "sid_1_let") + window)
    start = "TVM_DLL int32_t tvmgen_default___tvm_main__"
    files = changed(mains.usmp(main=mains.lets(0, 128) + steps), (start, HALF + start))
    compared_plan(files, tmp_path, (4, 2, 512, 416))
    text = (tmp_path / "mine/manifest.yaml").read_text()
    assert "{name: T_out, dtype: int16, shape: [64], direction: inout}" in text


@pytest.mark.needs("cc")
def test_casts_of_offsets_leave_with_them(tmp_path):
    """A cast to the type of the old offset could be too small for the new one."""
    name = "global_const_workspace_2_var"
    compared_plan(changed(mains.usmp(), (f"{name}[16]", f"{name}[(int8_t)16]")), tmp_path, (3, 2, 512, 416))
    assert f"{name}[0]" in (tmp_path / "mine/operators/default_lib1.c").read_text()


COUNTED = """\
#include <stdio.h>
#include <string.h>
#include <mine.h>
#include <opwest/npu_emul_host.h>
#include "tvmgen_default.h"

OPWEST_NPU_EMUL_HOST_DEFINE(npu_a, 0);
OPWEST_NPU_EMUL_HOST_DEFINE(npu_b, 0);
MINE_WORKSPACE_DEFINE(workspace);

int32_t tvmgen_default_run(struct tvmgen_default_inputs *inputs, struct tvmgen_default_outputs *outputs,
			   struct tvmgen_default_devices *devices);

static const uint8_t program[] __attribute__((aligned(16))) = {PROGRAM};
static const struct opwest_program loaded = {"npu", program, sizeof(program)};

#define HOOKS(name)                                                                                \
	int32_t TVMDevice##name##Activate(void *dev) { return opwest_accelerator_activate(dev); }  \
	int32_t TVMDevice##name##Open(void *dev)                                                   \
	{                                                                                          \
		const int32_t rc = opwest_accelerator_open(dev, 1000);                             \
		return rc != 0 ? rc : opwest_accelerator_load(dev, &loaded);                       \
	}                                                                                          \
	int32_t TVMDevice##name##Close(void *dev) { return opwest_accelerator_close(dev); }             \
	int32_t TVMDevice##name##Deactivate(void *dev) { return opwest_accelerator_deactivate(dev); }
HOOKS(NpuA)
HOOKS(NpuB)

static void print_counts(const char *who)
{
	const struct device *const devices[] = {&npu_a, &npu_b};

	for (int i = 0; i < 2; i++) {
		struct opwest_npu_emul_counts counts;

		opwest_npu_emul_count(devices[i], &counts);
		printf("%s %s: activate %u, open %u, close %u, deactivate %u\\n", who, devices[i]->name,
		       counts.calls[OPWEST_NPU_EMUL_ACTIVATE], counts.calls[OPWEST_NPU_EMUL_OPEN],
		       counts.calls[OPWEST_NPU_EMUL_CLOSE], counts.calls[OPWEST_NPU_EMUL_DEACTIVATE]);
		opwest_npu_emul_reset(devices[i]);
	}
}

static int run_of_tvm(const int8_t *x, int8_t *y)
{
	return tvmgen_default_run(&(struct tvmgen_default_inputs){(void *)x}, &(struct tvmgen_default_outputs){y},
				  &(struct tvmgen_default_devices){(void *)&npu_a, (void *)&npu_b});
}

int main(void)
{
	const struct mine_devices context = {.npu_a = &npu_a, .npu_b = &npu_b};
	int8_t x[5][64], wanted[5][64], result[64];
	int rc = 0, different = 0;

	for (int run = 0; run < 5; run++) {
		for (int i = 0; i < 64; i++) {
			x[run][i] = (int8_t)(i * 7 + run * 31);
		}
		rc |= run_of_tvm(x[run], wanted[run]);
	}
	print_counts("TVM");
	rc |= mine_open(&workspace, &context);
	for (int run = 0; run < 5; run++) {
		memcpy(workspace.input.x, x[run], 64);
		rc |= mine_run(&(struct mine_inputs){0}, &(struct mine_outputs){.m_Identity = result}, &workspace, &context);
		different += memcmp(result, wanted[run], 64) != 0;
	}
	rc |= mine_close(&workspace, &context);
	print_counts("opwest");
	printf("%d different\\n", different);
	return rc;
}
"""


def emulated(folder):
    """Import the network on two accelerators, and complete its manifest for emulated ones."""
    spec = importlib.util.spec_from_file_location("npu", ROOT / "zephyr_module/drivers/npu_emul/make_program.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    done = import_mlf(made.unpack(mains.devices(), folder / "lib"), folder / "mine", Options("mine"))
    path = folder / "mine/manifest.yaml"
    text = path.read_text()
    assert text.count("devicetree: {nodelabel: FILL_IN}") == 2
    device = r"  \1:\n    program: npu.onpu\n    host: {driver: npu-emul}\n    devicetree: {nodelabel: \1}"
    path.write_text(re.sub(r"  (npu_[ab]):\n    devicetree: \{nodelabel: FILL_IN\}", device, text))
    program = module.make_program([("add", {"id": 1})])
    (folder / "mine/npu.onpu").write_bytes(program)
    return done, program


@pytest.mark.needs("cc")
def test_accelerators_are_programmed_once(tmp_path):
    """TVM's main activates both devices in every inference, the imported model when it is opened."""
    done, program = emulated(tmp_path)
    assert done.steps == 3
    assert not any("TVMDevice" in w for w in done.warnings)
    lib = tmp_path / "lib/codegen/host"
    driver = COUNTED.replace("PROGRAM", ", ".join(map(str, program)), 1).replace("tvmgen_", f"{lib}/include/tvmgen_", 1)
    folders = [lib / "include", *(ROOT / "zephyr_module" / one for one in ("include", "include_tvm"))]
    program = linked(generated(tmp_path), driver, [lib / "src/default_lib0.c", lib / "src/default_lib1.c"], folders)
    often, once = "activate 5, open 5, close 5, deactivate 5", "activate 1, open 5, close 5, deactivate 1"
    assert output_of(program).splitlines() == [
        *(f"TVM npu_{n}: {often}" for n in "ab"),
        *(f"opwest npu_{n}: {once}" for n in "ab"),
        "0 different",
    ]


def test_asynchronous_devices_overlap(tmp_path):
    """Both devices work at the same time: `run` waits for the first only before the step that reads its result."""
    emulated(tmp_path)
    path = tmp_path / "mine/manifest.yaml"
    path.write_text(re.sub(r"(    device: \{type: npu_[ab]\})", r"\1\n    async: true", path.read_text()))
    model, plan = planned(path.parent)
    assert [s.device for s in model.steps] == ["npu_a", "npu_b", None]
    assert [[sync.device for sync in syncs] for syncs in plan.schedule.syncs][:3] == [[], [], ["npu_a", "npu_b"]]


def test_devices_without_hooks_are_handles(tmp_path):
    done, text = imported(mains.devices(hooks=False), tmp_path)
    assert done.steps == 3
    assert text.count("handle: {type: FILL_IN, header: FILL_IN, expression: FILL_IN}") == 2
    assert "- {call: npu_b_main, device: npu_b, args: [x, x, sid_2]}" in text


def test_several_devices_of_a_main_that_is_kept(tmp_path):
    with pytest.raises(OpwestError, match=r"main takes 2 device contexts: npu_a, npu_b; main is not unpacked"):
        imported(mains.devices(tail="  for (;;) {\n  }\n"), tmp_path)


def test_names_that_c_forbids_are_changed_with_a_note(tmp_path):
    files = {n: c.replace(b"Identity", b"register").replace(b"->x", b"->union") for n, c in mains.usmp().items()}
    files = changed(files, ("void* x;", "void* union;"), name=HEADER)
    done, _ = imported(changed(files, ('"x"', '"union"'), name="metadata.json"), tmp_path)
    assert done.remarks[:2] == (
        "the input is named 'input_union': 'union' is a keyword of C",
        "the output is named 'output_register': 'register' is a keyword of C",
    )
    planned(tmp_path / "mine")


def test_metadata_of_several_tvm_devices(tmp_path):
    """metadata.json has one entry of main for each kind of device; their inputs and outputs must agree."""
    files = mains.devices()
    whole = json.loads(files["metadata.json"])
    functions = whole["modules"]["default"]["memory"]["functions"]
    [main] = functions["main"]
    functions["main"] = [{**main, "device": 12}, {"device": 14, "workspace_size_bytes": 64}, main]
    done, _ = imported({**files, "metadata.json": json.dumps(whole).encode()}, tmp_path)
    assert done.steps == 3
    functions["main"][0]["inputs"] = {"x": {"dtype": "int8", "size": 32}}
    with pytest.raises(OpwestError, match="main has different inputs for different TVM devices"):
        imported({**files, "metadata.json": json.dumps(whole).encode()}, tmp_path, "other")


def test_allocation_of_unknown_size_is_reported_with_its_file(tmp_path):
    files = changed(mains.allocated(), ("(uint64_t)160", "(uint64_t)sizeof(table)"))
    with pytest.raises(
        OpwestError, match=r"default_lib1\.c\): error: 'tvmgen_default_window' allocates a workspace of"
    ):
        imported(files, tmp_path)

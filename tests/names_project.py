# SPDX-License-Identifier: Apache-2.0
"""A model whose tensors, pools, operators and symbols have names of macros and types."""

from pathlib import Path

from opwest.model.types.c_names import member_name

# Macros and types of compilers, C libraries, CMSIS, Zephyr and vendors, and names that the rule must keep apart.
INPUTS = """KERNEL m_KERNEL BUFSIZ PRId32 SCNu8 FLASH ADC1 GPIOA SysTick CoreDebug NVIC_SetPriority
SCB_ICSR_VECTACTIVE_Msk EOF NULL EINVAL INT8_MAX INT32_C UINT8_MAX CHAR_BIT RAND_MAX M_PI I TRUE MIN
MAX BIT ARRAY_SIZE CONFIG_ARM CONFIG_64BIT DEVICE_DT_GET K_FOREVER USEC_PER_MSEC LOG_LEVEL
ZEPHYR_INCLUDE_KERNEL STM32L4R5xx errno stdin stdout stderr unix linux i386 near far complex
st_atime uint8_t size_t int8_t k_timeout_t Identity image assert""".split()
OUTPUTS = ["RESET", "ENABLE", "time_t"]
PLACED = ["SEEK_SET", "float_t"]
"""An input and an output in the workspace."""
POOLS = ["SRAM", "ssize_t"]
OPERATORS = {"uint8_t": "KERNEL", "IRQn_Type": "unix", "DMB": "TAKE"}
"""The operators, and their symbols."""

SOURCE = """#include <stdint.h>
int32_t KERNEL({parameters}, int8_t *RESULT);
int32_t KERNEL({parameters}, int8_t *RESULT)
{{
	RESULT[0] = (int8_t)({total});
	return 0;
}}
"""
ADDITION = """int32_t {name}(const int8_t *x, int8_t *y);
int32_t {name}(const int8_t *x, int8_t *y)
{{
	y[0] = (int8_t)(x[0] + {added});
	return 0;
}}
"""
MAIN = """#ifdef __ZEPHYR__
#include <zephyr/kernel.h>
#include <zephyr/device.h>
#include <zephyr/logging/log.h>
#ifdef CONFIG_CPU_CORTEX_M
#include <cmsis_core.h>
#endif
#include <soc.h>
#endif
{headers}
#include <NAMES.h>
#ifdef __ZEPHYR__
#include <NAMES_devicetree.h>
#endif
#include <tvmgen_NAMES.h>

NAMES_WORKSPACE_DEFINE(workspace);
static int8_t values[{count}], RESULTS[{results}];

int main(void)
{{
	static const struct NAMES_devices devices = NAMES_DEVICES_DT_INIT;
	struct NAMES_inputs in;
	struct NAMES_outputs out;
	struct tvmgen_NAMES_inputs tvm_in = {{{tvm_in}}};
	struct tvmgen_NAMES_outputs tvm_out = {{{tvm_out}}};

	for (int i = 0; i < {count}; i++) {{
		values[i] = (int8_t)(i % 3);
	}}
{fills}
	printf("open %d\\n", NAMES_open(&workspace, &devices));
	workspace.input.m_SEEK_SET[0] = 5;
	printf("run %d\\n", NAMES_run(&in, &out, &workspace, &devices));
	printf("results %d %d %d %d\\n", RESULTS[0], RESULTS[1], RESULTS[2], workspace.output.m_float_t[0]);
	printf("tvmgen %d\\n", (int)tvmgen_NAMES_run(&tvm_in, &tvm_out));
	printf("results %d %d %d %d\\n", RESULTS[0], RESULTS[1], RESULTS[2], RESULTS[3]);
	return 0;
}}
"""
C_HEADERS = """complex ctype errno float inttypes limits math signal stdarg stddef stdint stdio stdlib string time
strings sys/types""".split()
SUM = sum(i % 3 for i in range(len(INPUTS)))
EXPECTED = f"open 0\nrun 0\nresults {SUM} {SUM + 1} {SUM + 2} 6\ntvmgen 0\nresults {SUM} {SUM + 1} {SUM + 2} 6\n"


def write(folder: Path) -> Path:
    """Write the manifest, the operators in C and a main.c that includes the headers; return the manifest."""
    folder.mkdir(parents=True, exist_ok=True)
    own = [f"a{i}" for i, name in enumerate(INPUTS)]
    parameters, total = ", ".join(f"const int8_t *{name}" for name in own), " + ".join(f"{name}[0]" for name in own)
    additions = [ADDITION.format(name=name, added=added) for name, added in (("unix", 1), ("TAKE", 2))]
    (folder / "operators.c").write_text(SOURCE.format(parameters=parameters, total=total) + "".join(additions))
    given = {name: f"&values[{i}]" for i, name in enumerate(INPUTS)}
    fills = [f"\tin.{member_name(name)} = {value};" for name, value in given.items()]
    fills += [f"\tout.{member_name(name)} = &RESULTS[{i}];" for i, name in enumerate(OUTPUTS)]
    main = MAIN.format(
        headers="\n".join(f"#if __has_include(<{name}.h>)\n#include <{name}.h>\n#endif" for name in C_HEADERS),
        count=len(INPUTS),
        results=len(OUTPUTS) + 1,
        fills="\n".join(fills),
        tvm_in=", ".join([*given.values(), "&five"]),
        tvm_out=", ".join(f"&RESULTS[{i}]" for i in range(len(OUTPUTS) + 1)),
    )
    (folder / "main.c").write_text(main.replace("static int8_t values", "static int8_t five = 5, values"))
    tensor = "{dtype: int8, shape: [1]}"
    placed = f"{{dtype: int8, shape: [1], pool: {POOLS[1]}}}"
    arguments = ", ".join(f"{{name: '{name}', dtype: int8, shape: [1]}}" for name in INPUTS)
    pair = "{name: 'NULL', dtype: int8, shape: [1]}, {name: EOF, dtype: int8, shape: [1], direction: out}"
    operators = {name: f"symbol: {symbol}, args: [{pair}]" for name, symbol in OPERATORS.items()}
    result = "{name: RESULT, dtype: int8, shape: [1], direction: out}"
    operators["uint8_t"] = f"symbol: KERNEL, args: [{arguments}, {result}]"
    lines = ["version: 1", "model: NAMES", "boards: [native_sim/native/64, mps2/an385]"]
    lines += ["objects:", "  - {files: [operators.c]}", f"memory: {{{', '.join(f'{name}: {{}}' for name in POOLS)}}}"]
    lines += ["compat: tvmgen", "operators:", *(f"  {name}: {{{content}}}" for name, content in operators.items())]
    lines += ["run:", "  inputs:", *(f"    '{name}': {tensor}" for name in INPUTS), f"    {PLACED[0]}: {placed}"]
    lines += ["  outputs:", *(f"    {name}: {tensor}" for name in OUTPUTS), f"    {PLACED[1]}: {placed}"]
    lines += [f"  tensors: {{ADC2: {{pool: {POOLS[0]}, dtype: int8, shape: [1]}}}}", "  steps:"]
    calls = [("uint8_t", [*map(repr, INPUTS), OUTPUTS[0]]), ("IRQn_Type", OUTPUTS[:2])]
    calls += [("IRQn_Type", [OUTPUTS[1], "ADC2"]), ("IRQn_Type", PLACED), ("DMB", [OUTPUTS[0], OUTPUTS[2]])]
    lines += [f"    - {{call: {operator}, args: [{', '.join(tensors)}]}}" for operator, tensors in calls]
    lines.append("application: {sources: [main.c]}")
    (folder / "manifest.yaml").write_text("\n".join(lines) + "\n")
    return folder / "manifest.yaml"

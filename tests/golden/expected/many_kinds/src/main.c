/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Written once by opwest; you may edit it. Runs each model once on zeros and prints the outputs.
 */
#ifdef __ZEPHYR__
#include <zephyr/sys/printk.h>
#else
#include <stdio.h>
#define printk printf
#endif
#include <limits.h>

#include <many_kinds.h>

#ifdef __ZEPHYR__
#include <many_kinds_devicetree.h>
#endif

/* By default, printk() has no floating-point numbers. */
static long long thousandths(double value)
{
	return value > -1e15 && value < 1e15 ? (long long)(value * 1000) : LLONG_MIN;
}

MANY_KINDS_WORKSPACE_DEFINE(many_kinds_workspace);
static const struct many_kinds_devices many_kinds_context = MANY_KINDS_DEVICES_DT_INIT;
OPWEST_ALIGNED(1) static int8_t many_kinds_input_in_int8[MANY_KINDS_INPUT_IN_INT8_ELEMENTS];
OPWEST_ALIGNED(16) static uint8_t many_kinds_input_in_uint8[MANY_KINDS_INPUT_IN_UINT8_ELEMENTS];
OPWEST_ALIGNED(2) static int16_t many_kinds_input_in_int16[MANY_KINDS_INPUT_IN_INT16_ELEMENTS];
OPWEST_ALIGNED(2) static uint16_t many_kinds_input_in_uint16[MANY_KINDS_INPUT_IN_UINT16_ELEMENTS];
OPWEST_ALIGNED(4) static int32_t many_kinds_input_in_int32[MANY_KINDS_INPUT_IN_INT32_ELEMENTS];
OPWEST_ALIGNED(4) static uint32_t many_kinds_input_in_uint32[MANY_KINDS_INPUT_IN_UINT32_ELEMENTS];
OPWEST_ALIGNED(8) static int64_t many_kinds_input_in_int64[MANY_KINDS_INPUT_IN_INT64_ELEMENTS];
OPWEST_ALIGNED(8) static uint64_t many_kinds_input_in_uint64[MANY_KINDS_INPUT_IN_UINT64_ELEMENTS];
OPWEST_ALIGNED(2) static uint16_t many_kinds_input_in_float16[MANY_KINDS_INPUT_IN_FLOAT16_ELEMENTS];
OPWEST_ALIGNED(64) static float many_kinds_input_in_float32[MANY_KINDS_INPUT_IN_FLOAT32_ELEMENTS];
OPWEST_ALIGNED(8) static double many_kinds_input_in_float64[MANY_KINDS_INPUT_IN_FLOAT64_ELEMENTS];
OPWEST_ALIGNED(1) static uint8_t many_kinds_input_in_bool[MANY_KINDS_INPUT_IN_BOOL_ELEMENTS];
OPWEST_ALIGNED(4) static int32_t many_kinds_input_values[MANY_KINDS_INPUT_VALUES_ELEMENTS];
OPWEST_ALIGNED(1) static uint8_t many_kinds_input_seen[MANY_KINDS_INPUT_SEEN_ELEMENTS];
OPWEST_ALIGNED(1) static int8_t many_kinds_output_out_int8[MANY_KINDS_OUTPUT_OUT_INT8_ELEMENTS];
OPWEST_ALIGNED(1) static uint8_t many_kinds_output_out_uint8[MANY_KINDS_OUTPUT_OUT_UINT8_ELEMENTS];
OPWEST_ALIGNED(2) static int16_t many_kinds_output_out_int16[MANY_KINDS_OUTPUT_OUT_INT16_ELEMENTS];
OPWEST_ALIGNED(2)
static uint16_t many_kinds_output_out_uint16[MANY_KINDS_OUTPUT_OUT_UINT16_ELEMENTS];
OPWEST_ALIGNED(4) static int32_t many_kinds_output_out_int32[MANY_KINDS_OUTPUT_OUT_INT32_ELEMENTS];
OPWEST_ALIGNED(4)
static uint32_t many_kinds_output_out_uint32[MANY_KINDS_OUTPUT_OUT_UINT32_ELEMENTS];
OPWEST_ALIGNED(8) static int64_t many_kinds_output_out_int64[MANY_KINDS_OUTPUT_OUT_INT64_ELEMENTS];
OPWEST_ALIGNED(8)
static uint64_t many_kinds_output_out_uint64[MANY_KINDS_OUTPUT_OUT_UINT64_ELEMENTS];
OPWEST_ALIGNED(2)
static uint16_t many_kinds_output_out_float16[MANY_KINDS_OUTPUT_OUT_FLOAT16_ELEMENTS];
OPWEST_ALIGNED(4)
static float many_kinds_output_out_float32[MANY_KINDS_OUTPUT_OUT_FLOAT32_ELEMENTS];
OPWEST_ALIGNED(8)
static double many_kinds_output_out_float64[MANY_KINDS_OUTPUT_OUT_FLOAT64_ELEMENTS];
OPWEST_ALIGNED(1) static uint8_t many_kinds_output_out_bool[MANY_KINDS_OUTPUT_OUT_BOOL_ELEMENTS];
OPWEST_ALIGNED(1) static uint8_t many_kinds_output_lowest[MANY_KINDS_OUTPUT_LOWEST_ELEMENTS];
OPWEST_ALIGNED(1) static uint8_t many_kinds_output_highest[MANY_KINDS_OUTPUT_HIGHEST_ELEMENTS];
OPWEST_ALIGNED(4) static int32_t many_kinds_output_sum[MANY_KINDS_OUTPUT_SUM_ELEMENTS];
OPWEST_ALIGNED(1) static uint8_t many_kinds_output_count[MANY_KINDS_OUTPUT_COUNT_ELEMENTS];

static int try_many_kinds(void)
{
	const struct many_kinds_inputs inputs = {.in_int8 = many_kinds_input_in_int8,
						 .in_uint8 = many_kinds_input_in_uint8,
						 .in_int16 = many_kinds_input_in_int16,
						 .in_uint16 = many_kinds_input_in_uint16,
						 .in_int32 = many_kinds_input_in_int32,
						 .in_uint32 = many_kinds_input_in_uint32,
						 .in_int64 = many_kinds_input_in_int64,
						 .in_uint64 = many_kinds_input_in_uint64,
						 .in_float16 = many_kinds_input_in_float16,
						 .in_float32 = many_kinds_input_in_float32,
						 .in_float64 = many_kinds_input_in_float64,
						 .in_bool = many_kinds_input_in_bool,
						 .values = many_kinds_input_values,
						 .seen = many_kinds_input_seen};
	const struct many_kinds_outputs outputs = {.out_int8 = many_kinds_output_out_int8,
						   .out_uint8 = many_kinds_output_out_uint8,
						   .out_int16 = many_kinds_output_out_int16,
						   .out_uint16 = many_kinds_output_out_uint16,
						   .out_int32 = many_kinds_output_out_int32,
						   .out_uint32 = many_kinds_output_out_uint32,
						   .out_int64 = many_kinds_output_out_int64,
						   .out_uint64 = many_kinds_output_out_uint64,
						   .out_float16 = many_kinds_output_out_float16,
						   .out_float32 = many_kinds_output_out_float32,
						   .out_float64 = many_kinds_output_out_float64,
						   .out_bool = many_kinds_output_out_bool,
						   .lowest = many_kinds_output_lowest,
						   .highest = many_kinds_output_highest,
						   .sum = many_kinds_output_sum,
						   .count = many_kinds_output_count};
	int rc = many_kinds_open(&many_kinds_workspace, &many_kinds_context);

	if (rc != 0) {
		printk("many_kinds: open returned %d\n", rc);
		return rc;
	}
	rc = many_kinds_run(&inputs, &outputs, &many_kinds_workspace, &many_kinds_context);
	if (rc == 0) {
		printk("many_kinds: out_int8:");
		for (size_t i = 0; i < MANY_KINDS_OUTPUT_OUT_INT8_ELEMENTS && i < 8U; i++) {
			printk(" %d", (int)many_kinds_output_out_int8[i]);
		}
		printk("\n");
		printk("many_kinds: out_uint8:");
		for (size_t i = 0; i < MANY_KINDS_OUTPUT_OUT_UINT8_ELEMENTS && i < 8U; i++) {
			printk(" %d", (int)many_kinds_output_out_uint8[i]);
		}
		printk("\n");
		printk("many_kinds: out_int16:");
		for (size_t i = 0; i < MANY_KINDS_OUTPUT_OUT_INT16_ELEMENTS && i < 8U; i++) {
			printk(" %d", (int)many_kinds_output_out_int16[i]);
		}
		printk("\n");
		printk("many_kinds: out_uint16:");
		for (size_t i = 0; i < MANY_KINDS_OUTPUT_OUT_UINT16_ELEMENTS && i < 8U; i++) {
			printk(" %d", (int)many_kinds_output_out_uint16[i]);
		}
		printk("\n");
		printk("many_kinds: out_int32:");
		for (size_t i = 0; i < MANY_KINDS_OUTPUT_OUT_INT32_ELEMENTS && i < 8U; i++) {
			printk(" %d", (int)many_kinds_output_out_int32[i]);
		}
		printk("\n");
		printk("many_kinds: out_uint32:");
		for (size_t i = 0; i < MANY_KINDS_OUTPUT_OUT_UINT32_ELEMENTS && i < 8U; i++) {
			printk(" %u", (unsigned int)many_kinds_output_out_uint32[i]);
		}
		printk("\n");
		printk("many_kinds: out_int64:");
		for (size_t i = 0; i < MANY_KINDS_OUTPUT_OUT_INT64_ELEMENTS && i < 8U; i++) {
			printk(" %lld", (long long)many_kinds_output_out_int64[i]);
		}
		printk("\n");
		printk("many_kinds: out_uint64:");
		for (size_t i = 0; i < MANY_KINDS_OUTPUT_OUT_UINT64_ELEMENTS && i < 8U; i++) {
			printk(" %llu", (unsigned long long)many_kinds_output_out_uint64[i]);
		}
		printk("\n");
		printk("many_kinds: out_float16:");
		for (size_t i = 0; i < MANY_KINDS_OUTPUT_OUT_FLOAT16_ELEMENTS && i < 8U; i++) {
			printk(" %d", (int)many_kinds_output_out_float16[i]);
		}
		printk(" (IEEE half bits)\n");
		printk("many_kinds: out_float32:");
		for (size_t i = 0; i < MANY_KINDS_OUTPUT_OUT_FLOAT32_ELEMENTS && i < 8U; i++) {
			printk(" %lld", thousandths((double)many_kinds_output_out_float32[i]));
		}
		printk(" (thousandths)\n");
		printk("many_kinds: out_float64:");
		for (size_t i = 0; i < MANY_KINDS_OUTPUT_OUT_FLOAT64_ELEMENTS && i < 8U; i++) {
			printk(" %lld", thousandths(many_kinds_output_out_float64[i]));
		}
		printk(" (thousandths)\n");
		printk("many_kinds: out_bool:");
		for (size_t i = 0; i < MANY_KINDS_OUTPUT_OUT_BOOL_ELEMENTS && i < 8U; i++) {
			printk(" %d", (int)many_kinds_output_out_bool[i]);
		}
		printk("\n");
		printk("many_kinds: lowest:");
		for (size_t i = 0; i < MANY_KINDS_OUTPUT_LOWEST_ELEMENTS && i < 8U; i++) {
			printk(" %d", (int)many_kinds_output_lowest[i]);
		}
		printk("\n");
		printk("many_kinds: highest:");
		for (size_t i = 0; i < MANY_KINDS_OUTPUT_HIGHEST_ELEMENTS && i < 8U; i++) {
			printk(" %d", (int)many_kinds_output_highest[i]);
		}
		printk("\n");
		printk("many_kinds: sum:");
		for (size_t i = 0; i < MANY_KINDS_OUTPUT_SUM_ELEMENTS && i < 8U; i++) {
			printk(" %d", (int)many_kinds_output_sum[i]);
		}
		printk("\n");
		printk("many_kinds: count:");
		for (size_t i = 0; i < MANY_KINDS_OUTPUT_COUNT_ELEMENTS && i < 8U; i++) {
			printk(" %d", (int)many_kinds_output_count[i]);
		}
		printk("\n");
	}
	printk("many_kinds: run returned %d\n", rc);
	(void)many_kinds_close(&many_kinds_workspace, &many_kinds_context);
	return rc;
}

int main(void)
{
	return try_many_kinds();
}

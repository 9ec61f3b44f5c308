/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file
 * A device under test of MLPerf Tiny: the runner's protocol on the UART of the console, around one
 * model. benchmark.h contains the properties of the model.
 */

#include <errno.h>
#include <string.h>

#include <mlperf_tiny.h>
#include <mlperf_tiny_devicetree.h>
#include <zephyr/device.h>
#include <zephyr/drivers/uart.h>
#include <zephyr/kernel.h>

#include "benchmark.h"
#include "runner_protocol.h"

MLPERF_TINY_WORKSPACE_DEFINE(workspace);
static const struct mlperf_tiny_devices devices = MLPERF_TINY_DEVICES_DT_INIT;
static const struct device *const uart = DEVICE_DT_GET(DT_CHOSEN(zephyr_console));

static uint8_t buffer[INPUT_BYTES] __aligned(8);
static int8_t input[INPUT_ELEMENTS] __aligned(16);
static int8_t output[OUTPUT_ELEMENTS] __aligned(16);
static struct runner runner;

static void put(char character)
{
	uart_poll_out(uart, (unsigned char)character);
}

/** Return the time since the start: the cycle counter of 32 bits, extended by the ticks. */
static uint64_t microseconds(void)
{
	uint32_t cycles = k_cycle_get_32();
	uint64_t coarse = k_ticks_to_cyc_floor64((uint64_t)k_uptime_ticks());
	int32_t rest = (int32_t)(cycles - (uint32_t)coarse);
	int64_t exact = (int64_t)coarse + rest;

	return k_cyc_to_us_floor64(exact < 0 ? 0 : (uint64_t)exact);
}

#if INPUT_IS_FLOAT
static float given(size_t i)
{
	float value;

	memcpy(&value, &buffer[i * sizeof(value)], sizeof(value));
	return value;
}

/** Return a number as the model's input, rounded half away from zero and saturated. */
static int8_t quantized(float value)
{
	float scaled = value / INPUT_SCALE + INPUT_ZERO_POINT;

	if (!(scaled > -128.0f)) {
		return INT8_MIN;
	}
	if (scaled >= 127.0f) {
		return INT8_MAX;
	}
	scaled = value / INPUT_SCALE;
	return (int8_t)((int)(scaled < 0.0f ? scaled - 0.5f : scaled + 0.5f) + INPUT_ZERO_POINT);
}
#endif

static int load(const uint8_t *bytes, size_t size)
{
	if (size != INPUT_BYTES) {
		return -EINVAL;
	}
	for (size_t i = 0; i < INPUT_ELEMENTS; i++) {
#if INPUT_IS_FLOAT
		ARG_UNUSED(bytes);
		input[i] = quantized(given(i));
#else
		input[i] = (int8_t)(bytes[i] ^ INPUT_FLIP);
#endif
	}
	return 0;
}

static int infer(void)
{
	return mlperf_tiny_run(&(struct mlperf_tiny_inputs){input},
			       &(struct mlperf_tiny_outputs){output}, &workspace, &devices);
}

static float result(size_t i)
{
	return (float)(output[i] - OUTPUT_ZERO_POINT) * OUTPUT_SCALE;
}

static void results(void)
{
#if INPUT_IS_FLOAT
	float sum = 0.0f;

	for (size_t i = 0; i < OUTPUT_ELEMENTS; i++) {
		float difference = result(i) - given(i);

		sum += difference * difference;
	}
	runner_decimal(&runner, sum / OUTPUT_ELEMENTS);
#else
	for (size_t i = 0; i < OUTPUT_ELEMENTS; i++) {
		runner_text(&runner, i == 0 ? "" : ",");
		runner_decimal(&runner, result(i));
	}
#endif
}

int main(void)
{
	static const struct runner_config config = {
		.model = BENCHMARK_MODEL,
		.vendor = "opwest",
		.buffer = buffer,
		.capacity = sizeof(buffer),
		.put = put,
		.microseconds = microseconds,
		.load = load,
		.infer = infer,
		.results = results,
	};
	unsigned char character;
	int rc = mlperf_tiny_open(&workspace, &devices);

	runner.config = &config;
	if (rc != 0) {
		runner_text(&runner, "e-[The model does not open]\r\n");
		return 0;
	}
	runner_start(&runner);
	for (;;) {
		if (uart_poll_in(uart, &character) == 0) {
			runner_receive(&runner, (char)character);
		} else if (IS_ENABLED(CONFIG_ARCH_POSIX)) {
			k_usleep(100); /* simulated time passes only while the thread sleeps */
		}
	}
}

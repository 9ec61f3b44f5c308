/* SPDX-License-Identifier: Apache-2.0 */
/* An application of microTVM's C interface: two modules, as TVM's applications call them. */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>

#include <opwest/port.h>
#include <tvmgen_default.h>
#include <tvmgen_detection.h>

#include "cases.h"

#define ALIGNED(bytes) __attribute__((aligned(bytes)))

static ALIGNED(16) uint8_t dram[TVMGEN_DETECTION_DRAM_WORKSPACE_POOL_SIZE];
static ALIGNED(16) uint8_t sram[TVMGEN_DETECTION_SRAM_WORKSPACE_POOL_SIZE + 1];
static ALIGNED(16) uint8_t other_dram[TVMGEN_DETECTION_DRAM_WORKSPACE_POOL_SIZE];
static ALIGNED(16) uint8_t other_sram[TVMGEN_DETECTION_SRAM_WORKSPACE_POOL_SIZE];

static void case_default(void)
{
	int16_t image[TVMGEN_DEFAULT_SERVING_DEFAULT_INPUT_0_SIZE / sizeof(int16_t)] = {1, -2, 3, 4};
	int16_t scores[TVMGEN_DEFAULT_PARTITIONEDCALL_0_SIZE / sizeof(int16_t)] = {0};
	struct tvmgen_default_inputs inputs = {.serving_default_input_0 = image};
	struct tvmgen_default_outputs outputs = {.PartitionedCall_0 = scores};

	EXPECT(TVMGEN_DEFAULT_WORKSPACE_SIZE == 8);
	EXPECT(tvmgen_default_close() == 0); /* not open */
	for (int i = 0; i < 3; i++) {
		memset(scores, 0, sizeof(scores));
		EXPECT(tvmgen_default_run(&inputs, &outputs) == 0);
		EXPECT(memcmp(scores, (const int16_t[]){4, -8, 12, 16}, 8) == 0);
	}
	image[0] = -5; /* the operator fails */
	EXPECT(tvmgen_default_run(&inputs, &outputs) == -5);
	image[0] = 2;
	EXPECT(tvmgen_default_run(&inputs, &outputs) == 0 && scores[0] == 8);
	EXPECT(tvmgen_default_close() == 0);
	EXPECT(tvmgen_default_open() == 0);
	EXPECT(tvmgen_default_open() == 0); /* open already */
	EXPECT(tvmgen_default_run(&inputs, &outputs) == 0 && scores[0] == 8);

	EXPECT(tvmgen_default_run(NULL, &outputs) == -EINVAL);
	EXPECT(tvmgen_default_run(&inputs, NULL) == -EINVAL);
	inputs.serving_default_input_0 = NULL;
	EXPECT(tvmgen_default_run(&inputs, &outputs) == -EINVAL);
	inputs.serving_default_input_0 = (uint8_t *)image + 1;
	EXPECT(tvmgen_default_run(&inputs, &outputs) == -EINVAL);
}

static void case_detection(void)
{
	static const struct device q = {"q", NULL, NULL, NULL};
	int32_t x[TVMGEN_DETECTION_X_SIZE / sizeof(int32_t)] = {1, 2, 3};
	int32_t y[TVMGEN_DETECTION_Y_SIZE / sizeof(int32_t)];
	struct tvmgen_detection_inputs inputs = {x};
	struct tvmgen_detection_outputs outputs = {y};
	struct tvmgen_detection_workspace_pools pools = {.dram = dram, .sram = sram};
	struct tvmgen_detection_devices devices = {.ethos_u = NULL};

	/* The devices of the manifest: n(pu), o(ther). */
	EXPECT(tvmgen_detection_run(&inputs, &outputs, &pools, NULL) == 0);
	EXPECT(y[0] == 'o' - 'n' - 1 && y[2] == 'o' - 'n' - 3);
	EXPECT(tvmgen_detection_run(&inputs, &outputs, &pools, &devices) == 0);
	EXPECT(y[0] == 'o' - 'n' - 1);

	/* Another device, other memory: the model is opened again. */
	devices.ethos_u = (void *)(uintptr_t)&q;
	memset(y, 0, sizeof(y));
	EXPECT(tvmgen_detection_run(&inputs, &outputs, &pools, &devices) == 0);
	EXPECT(y[0] == 'o' - 'q' - 1);
	pools.dram = other_dram;
	pools.sram = other_sram;
	memset(dram, 0xa5, sizeof(dram));
	memset(sram, 0xa5, sizeof(sram));
	EXPECT(tvmgen_detection_run(&inputs, &outputs, &pools, &devices) == 0);
	EXPECT(y[0] == 'o' - 'q' - 1 && y[1] == 'o' - 'q' - 2);
	for (size_t i = 0; i < sizeof(dram); i++) {
		EXPECT(dram[i] == 0xa5);
	}

	/* Errors, after each of which the next run succeeds. */
	EXPECT(tvmgen_detection_run(&inputs, &outputs, NULL, &devices) == -EINVAL);
	pools.sram = NULL;
	EXPECT(tvmgen_detection_run(&inputs, &outputs, &pools, &devices) == -EINVAL);
	pools.sram = sram + 1;
	EXPECT(tvmgen_detection_run(&inputs, &outputs, &pools, &devices) == -EINVAL);
	pools.sram = sram;
	inputs.x = NULL;
	EXPECT(tvmgen_detection_run(&inputs, &outputs, &pools, &devices) == -EINVAL);
	inputs.x = x;
	EXPECT(tvmgen_detection_open(&pools, NULL) == 0);
	EXPECT(tvmgen_detection_run(&inputs, &outputs, &pools, NULL) == 0);
	EXPECT(y[0] == 'o' - 'n' - 1);
	EXPECT(tvmgen_detection_close() == 0);
}

static volatile int wrong;

static void *run_often(void *argument)
{
	int16_t image[4] = {1, 2, 3, 4};
	int16_t scores[4];
	struct tvmgen_default_inputs inputs = {image};
	struct tvmgen_default_outputs outputs = {scores};

	(void)argument;
	for (int i = 0; i < 20000; i++) {
		int32_t rc = tvmgen_default_run(&inputs, &outputs);

		if (rc == 0 ? scores[3] != 16 : rc != -EBUSY) {
			wrong = 1;
		}
	}
	return NULL;
}

/* Of two runs at the same time, one returns -EBUSY. */
static void case_threads(void)
{
	pthread_t threads[2];

	for (int i = 0; i < 2; i++) {
		EXPECT(pthread_create(&threads[i], NULL, run_often, NULL) == 0);
	}
	for (int i = 0; i < 2; i++) {
		EXPECT(pthread_join(threads[i], NULL) == 0);
	}
	EXPECT(!wrong);
}

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, CASE(default), CASE(detection), CASE(threads));
}

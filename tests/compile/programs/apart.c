/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places the workspace, its pools and the buffers of a model in one arena. The first line of output
 * has their sizes and alignments. Each line of input has their offsets, in the order workspace,
 * pools, inputs, outputs; its answer: the result of open, its hook and argument, those of run, and
 * whether memory has changed only as permitted.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <apart.h>

#define ARENA 4096
#define MOST  16

static _Alignas(64) uint8_t arena[ARENA];
static uint8_t before[ARENA];
static const struct apart_devices devices = APART_DEVICES_DT_INIT;
static struct apart_workspace initial;

/* Every output begins with the sum of all inputs, as a byte. */
static int is_right(const void *const *outputs, int32_t sum)
{
	for (uint16_t i = 0; i < apart_model.output_count; i++) {
		if (*(const int8_t *)outputs[i] != (int8_t)sum) {
			return 0;
		}
	}
	return 1;
}

static int32_t sum_of(const void *const *inputs)
{
	int32_t sum = 0;

	for (uint16_t i = 0; i < apart_model.input_count; i++) {
		for (uint32_t k = 0; k < apart_model.inputs[i].size; k++) {
			sum += ((const int8_t *)inputs[i])[k];
		}
	}
	return sum;
}

static void play(const long *offsets)
{
	struct apart_workspace *const workspace = (void *)&arena[offsets[0]];
	struct opwest_status *const status = &workspace->status;
	const void *inputs[2 * MOST];
	const void *const *const outputs = &inputs[apart_model.input_count];
	struct apart_inputs given;
	struct apart_outputs taken;
	int32_t sum;
	int rc;

	for (int i = 0; i < ARENA; i++) {
		arena[i] = (uint8_t)(7 * i + 1);
	}
	*workspace = initial;
	for (uint16_t i = 0; i < apart_model.pool_count; i++) {
		uint8_t *const pool = &arena[offsets[1 + i]];

		memcpy((uint8_t *)workspace + i * sizeof(pool), &pool, sizeof(pool));
	}
	offsets += 1 + apart_model.pool_count;
	for (int i = 0; i < apart_model.input_count + apart_model.output_count; i++) {
		inputs[i] = &arena[*offsets++];
	}
	memcpy(&given, inputs, sizeof(given));
	memcpy(&taken, outputs, sizeof(taken));
	rc = apart_open(workspace, &devices);
	printf("%d %u %u ", rc, status->hook, status->argument);
	if (rc != 0) {
		puts("0 0 0 1");
		return;
	}
	sum = sum_of(inputs);
	memcpy(before, arena, sizeof(arena));
	rc = apart_run(&given, &taken, workspace, &devices);
	printf("%d %u %u ", rc, status->hook, status->argument);
	if (rc == 0) {
		printf("%d\n", is_right(outputs, sum));
	} else {
		memcpy(status, &before[(uint8_t *)status - arena], sizeof(*status));
		printf("%d\n", memcmp(arena, before, sizeof(arena)) == 0);
	}
}

static void describe(const struct opwest_tensor *tensors, uint16_t count)
{
	for (uint16_t i = 0; i < count; i++) {
		printf(" %u %u", tensors[i].size, OPWEST_TENSOR_ALIGN(tensors[i].flags));
	}
}

int main(void)
{
	char line[256];

	printf("%zu %zu", sizeof(struct apart_workspace), _Alignof(struct apart_workspace));
	for (uint16_t i = 0; i < apart_model.pool_count; i++) {
		printf(" %u %u", apart_model.pools[i].size, apart_model.pools[i].align);
	}
	describe(apart_model.inputs, apart_model.input_count);
	describe(apart_model.outputs, apart_model.output_count);
	puts("");
	while (fgets(line, sizeof(line), stdin) != NULL) {
		long offsets[1 + 3 * MOST];
		char *at = line;

		for (size_t i = 0; *at != '\n' && i < sizeof(offsets) / sizeof(offsets[0]); i++) {
			offsets[i] = strtol(at, &at, 10);
		}
		play(offsets);
	}
	return 0;
}

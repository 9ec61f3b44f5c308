/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two models whose tensors are in separate blocks of exactly their size, so that AddressSanitizer detects every
 * access outside of them; and the half of the service that needs Zephyr's threads.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <opwest/errors.h>

#include "service_internal.h"
#include "source.h"

#define TENSORS 3

static const uint32_t shape[] = {2, 150};
static const struct opwest_tensor inputs[] = {
	{.name = "a", .shape = shape, .size = 300, .rank = 2, .dtype = OPWEST_INT8},
	{.name = "absent", .size = 1},
};
static const struct opwest_tensor outputs[] = {{.name = "y", .size = 4, .dtype = OPWEST_FLOAT32}};
static const struct opwest_operator operators[] = {{.name = "conv"}};
static const struct opwest_model models[] = {
	{.name = "m",
	 .inputs = inputs,
	 .outputs = outputs,
	 .operators = operators,
	 .input_count = 2,
	 .output_count = 1},
	{.name = "empty"},
};

static bool opened[2];
static struct opwest_status status = OPWEST_STATUS_INIT;
static uint8_t *blocks[TENSORS];
static uint32_t runs;

static int open_first(void)
{
	opened[0] = true;
	return 0;
}

static int close_first(void)
{
	opened[0] = false;
	return 0;
}

/* Every third run fails, like an operator. */
static int run_first(void)
{
	if (!opened[0]) {
		return -EPERM;
	}
	blocks[2][0] = (uint8_t)(blocks[0][0] + blocks[0][299]);
	return ++runs % 3U == 0U ? -EIO : 0;
}

static int refuse(void)
{
	return -ENOTSUP;
}

static uint8_t *memory_first(uint16_t index)
{
	return index == 1U || index >= TENSORS ? NULL : blocks[index];
}

static uint8_t *no_memory(uint16_t index)
{
	(void)index;
	return NULL;
}

static const struct opwest_served_model served[] = {
	{&models[0], &status, &opened[0], open_first, run_first, close_first, memory_first},
	{&models[1], &status, &opened[1], refuse, refuse, refuse, no_memory},
};

void subject_reset(void)
{
	static const uint32_t sizes[TENSORS] = {300, 1, 4};

	for (size_t i = 0; i < TENSORS; i++) {
		free(blocks[i]);
		blocks[i] = calloc(1, sizes[i]);
	}
	opened[0] = false;
	runs = 0;
}

void opwest_service_lock(void)
{
}

void opwest_service_unlock(void)
{
}

uint32_t opwest_service_model_count(void)
{
	return 2;
}

const struct opwest_served_model *opwest_service_model(uint32_t index)
{
	return index < opwest_service_model_count() ? &served[index] : NULL;
}

void opwest_service_do(const struct opwest_served_model *model, enum opwest_service_action action,
		       struct opwest_service_report *report)
{
	int (*const actions[])(void) = {NULL, model->run, model->close};

	*report = (struct opwest_service_report){.hook = "", .device = "", .operator_name = "", .step = -1};
	report->result = action == OPWEST_SERVICE_OPEN ? opwest_service_open(model) : actions[action]();
	report->error = opwest_error_name(report->result);
	report->nanoseconds = runs;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tests of model up (ztest), continued: what the registry and the metadata say of it. Generated
 * by opwest from manifest.yaml.
 */
#include <errno.h>
#include <stdio.h>
#include <inttypes.h> /* after <stdio.h>: older newlibs need that */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <zephyr/ztest.h>

#include <up.h>

ZTEST(up, test_registry)
{
	static const char *const names[] = {
		"step",
	};
	const size_t count = sizeof(names) / sizeof(names[0]);

	zassert_equal(up_registry.count, count, "the registry has %" PRIu32 " operators",
		up_registry.count);
	for (size_t i = 0U; i < count; i++) {
		const struct opwest_entry *const entry = opwest_find(&up_registry, names[i]);

		zassert_not_null(entry, "%s is not found", names[i]);
		zassert_equal(strcmp(entry->info->name, names[i]), 0, "%s is found as %s", names[i],
			entry->info->name);
		zassert_equal(opwest_call(entry, NULL, 0U, NULL), -EINVAL,
			"%s is called without arguments", names[i]);
	}
	zassert_is_null(opwest_find(&up_registry, "no operator"),
		"what no operator is called is found");
	zassert_is_null(opwest_find(&up_registry, ""), "the empty name is found");
	zassert_equal(opwest_call(NULL, NULL, 0U, NULL), -ENOENT, "what was not found is called");
}

/* Whether bytes, shape and element type go together. */
static bool is_sound(const struct opwest_tensor *tensor)
{
	size_t size = opwest_dtype_size(tensor->dtype);

	for (uint8_t i = 0U; i < tensor->rank; i++) {
		size *= tensor->shape[i];
	}
	return tensor->name != NULL && size != 0U && size == tensor->size;
}

ZTEST(up, test_metadata)
{
	const struct opwest_model *const about = &up_model;

	zassert_equal(strcmp(about->name, "up"), 0, "the model is called %s", about->name);
	zassert_equal(about->version, OPWEST_METADATA_VERSION, "version");
	zassert_equal(about->input_count, 1U, "inputs");
	zassert_equal(about->output_count, 1U, "outputs");
	zassert_equal(about->operator_count, 1U, "operators");
	zassert_equal(about->step_count, 2U, "steps");
	zassert_equal(about->pool_count, 1U, "pools");
	zassert_equal(about->device_count, 0U, "devices");
	zassert_equal(about->constant_size, 16U, "constants");
	for (uint16_t i = 0U; i < about->operator_count; i++) {
		for (uint16_t k = 0U; k < about->operators[i].arg_count; k++) {
			zassert_true(is_sound(&about->operators[i].args[k]),
				"operator %s, argument %d",
				about->operators[i].name, (int)k);
		}
	}
	for (uint16_t i = 0U; i < about->step_count; i++) {
		zassert_true(about->steps[i].operator_index < about->operator_count,
			"operator of step %d", (int)i);
		zassert_true(about->steps[i].device_index < about->device_count ||
			about->steps[i].device_index == OPWEST_NO_DEVICE, "device of step %d",
				(int)i);
		zassert_not_null(opwest_model_step_name(about, i), "name of step %d", (int)i);
	}
	zassert_is_null(opwest_model_step_name(about, about->step_count), "name of no step");
	zassert_equal(strcmp(about->pools[0].name, "sram"), 0, "pool sram");
	zassert_equal(about->pools[0].size, UP_POOL_SRAM_SIZE, "size of pool sram");
	zassert_equal(about->pools[0].align, UP_POOL_SRAM_ALIGN, "alignment of pool sram");
	zassert_is_null(opwest_model_input(about, "no input"), "no input");
	zassert_is_null(opwest_model_output(about, "no output"), "no output");
}

ZTEST(up, test_metadata_of_input_x)
{
	const struct opwest_tensor *const about = opwest_model_input(&up_model, "x");

	zassert_not_null(about, "input x is not found");
	zassert_true(is_sound(about), "size, shape and element type");
	zassert_equal(about->dtype, UP_INPUT_X_DTYPE, "element type");
	zassert_equal(about->size, UP_INPUT_X_SIZE, "size");
	zassert_equal(OPWEST_TENSOR_ALIGN(about->flags), UP_INPUT_X_ALIGN, "alignment");
	zassert_equal(about->rank, UP_INPUT_X_RANK, "rank");
	zassert_equal(about->shape[0], UP_INPUT_X_DIM_0, "dimension 0");
}

ZTEST(up, test_metadata_of_output_y)
{
	const struct opwest_tensor *const about = opwest_model_output(&up_model, "y");

	zassert_not_null(about, "output y is not found");
	zassert_true(is_sound(about), "size, shape and element type");
	zassert_equal(about->dtype, UP_OUTPUT_Y_DTYPE, "element type");
	zassert_equal(about->size, UP_OUTPUT_Y_SIZE, "size");
	zassert_equal(OPWEST_TENSOR_ALIGN(about->flags), UP_OUTPUT_Y_ALIGN, "alignment");
	zassert_equal(about->rank, UP_OUTPUT_Y_RANK, "rank");
	zassert_equal(about->shape[0], UP_OUTPUT_Y_DIM_0, "dimension 0");
}

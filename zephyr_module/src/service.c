/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <opwest/service.h>

#ifdef CONFIG_OPWEST_SERVICE_CALL
/* The argument memory follows all other tensors. */
static uint32_t arguments_index(const struct opwest_served_model *served)
{
	uint32_t index = served->model->input_count + served->model->output_count;

#ifdef CONFIG_OPWEST_CHECK_STEPS
	index += served->details->buffer_count;
#endif
	return index;
}
#endif

const struct opwest_tensor *opwest_service_tensor(const struct opwest_served_model *served,
						  uint16_t index)
{
	const struct opwest_model *model = served->model;

	if (index < model->input_count) {
		return &model->inputs[index];
	}
	if (index - model->input_count < model->output_count) {
		return &model->outputs[index - model->input_count];
	}
#ifdef CONFIG_OPWEST_CHECK_STEPS
	const uint32_t buffer = (uint32_t)index - model->input_count - model->output_count;

	if (buffer < served->details->buffer_count) {
		return &served->details->buffers[buffer].tensor;
	}
#endif
#ifdef CONFIG_OPWEST_SERVICE_CALL
	if (index == arguments_index(served)) {
		return served->arguments;
	}
#endif
	return NULL;
}

static uint8_t *memory_of(const struct opwest_served_model *served, uint16_t index)
{
#ifdef CONFIG_OPWEST_SERVICE_CALL
	if (index == arguments_index(served)) {
		return served->argument_memory;
	}
#endif
#ifdef CONFIG_OPWEST_CHECK_STEPS
	const uint16_t first = served->model->input_count + served->model->output_count;

	if (index >= first) {
		const struct opwest_buffer *const buffer = &served->details->buffers[index - first];
		uint8_t *const pool = served->pool(buffer->pool);

		return pool != NULL ? pool + buffer->offset : NULL;
	}
#endif
	return served->memory(index);
}

int opwest_service_find(const struct opwest_served_model *served, const char *name, uint16_t *index)
{
	const struct opwest_tensor *tensor;

	for (uint16_t i = 0; (tensor = opwest_service_tensor(served, i)) != NULL; i++) {
		if (strcmp(tensor->name, name) == 0) {
			*index = i;
			return 0;
		}
	}
	return -ENOENT;
}

int opwest_service_open(const struct opwest_served_model *served)
{
	if (*served->opened) {
		(void)served->close();
	}
#ifdef CONFIG_OPWEST_PROFILE
	opwest_profile_reset(served->profile->measures, served->profile->count);
#endif
	return served->open();
}

/* Find the bytes between an offset and the end of a tensor. */
static int locate(const struct opwest_served_model *served, uint16_t index, uint32_t offset,
		  uint8_t **data, uint32_t *left)
{
	const struct opwest_tensor *tensor = opwest_service_tensor(served, index);
	uint8_t *memory;

	if (tensor == NULL) {
		return -ENOENT;
	}
	if (!*served->opened) {
		return -EPERM;
	}
	if (offset > tensor->size) {
		return -ERANGE;
	}
	memory = memory_of(served, index);
	if (memory == NULL) {
		return -ENOENT;
	}
	*data = memory + offset;
	*left = tensor->size - offset;
	return 0;
}

static bool is_writable(const struct opwest_served_model *served, uint16_t index)
{
#ifdef CONFIG_OPWEST_SERVICE_CALL
	if (index == arguments_index(served)) {
		return true;
	}
#endif
	return index < served->model->input_count;
}

int opwest_service_write(const struct opwest_served_model *served, uint16_t index, uint32_t offset,
			 const uint8_t *data, uint32_t size)
{
	uint8_t *memory;
	uint32_t left;
	int rc;

	if (!is_writable(served, index)) {
		return -ENOENT;
	}
	rc = locate(served, index, offset, &memory, &left);
	if (rc != 0) {
		return rc;
	}
	if (size > left) {
		return -ERANGE;
	}
	if (size > 0U) { /* otherwise data may be NULL, which memcpy() does not permit */
		memcpy(memory, data, size);
	}
	return 0;
}

int opwest_service_read(const struct opwest_served_model *served, uint16_t index, uint32_t offset,
			const uint8_t **data, uint32_t *size)
{
	uint8_t *memory;
	uint32_t left;
	int rc = locate(served, index, offset, &memory, &left);

	if (rc != 0) {
		return rc;
	}
	*data = memory;
	if (*size > left) {
		*size = left;
	}
	return 0;
}

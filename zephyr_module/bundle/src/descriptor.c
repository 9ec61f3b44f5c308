/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything of a descriptor that the firmware reads or calls is within the image, and its numbers
 * are those of the header. The signature is verified before: this finds errors of builders.
 */
#include <string.h>

#include "bundle_internal.h"
#include "format_internal.h"

/* The image, and the verdict of the first fault. */
struct examination {
	const struct opwest_bundle_extent *extent;
	struct opwest_bundle_verdict *verdict;
};

static bool wrong(const struct examination *at, uint64_t found, uint64_t expected, int32_t detail)
{
	return opwest_bundle_refuse(at->verdict, OPWEST_BUNDLE_DESCRIPTOR, detail, found, expected);
}

static bool is_number(const struct examination *at, uint64_t found, uint64_t expected,
		      int32_t detail)
{
	return found == expected || wrong(at, found, expected, detail);
}

/* `size` bytes in the image, aligned. NULL is right for no bytes only. */
static bool is_inside(const struct examination *at, const void *pointer, uint64_t size,
		      size_t align)
{
	const uintptr_t address = (uintptr_t)pointer;

	if (size == 0U && pointer == NULL) {
		return true;
	}
	return (address >= at->extent->begin && address <= at->extent->end &&
		size <= at->extent->end - address && address % align == 0U) ||
	       wrong(at, address, at->extent->begin, 0);
}

#define ARRAY_FITS(at, pointer, count)                                                             \
	is_inside(at, pointer, (uint64_t)(count) * sizeof((pointer)[0]),                           \
		  _Alignof(__typeof__(*(pointer))))

static bool is_string(const struct examination *at, const char *string)
{
	if (!is_inside(at, string, 1U, 1U)) {
		return false;
	}
	for (uintptr_t i = (uintptr_t)string; i < at->extent->end; i++) {
		if (*(const char *)i == '\0') {
			return true;
		}
	}
	return wrong(at, (uintptr_t)string, at->extent->begin, 0);
}

typedef void (*any_function_t)(void);

/* The lowest bit selects Thumb on Arm. */
static bool is_function(const struct examination *at, any_function_t function)
{
	return is_inside(at, (const void *)((uintptr_t)function & ~(uintptr_t)1), 2U, 1U);
}

#define IS_FUNCTION(at, function)          is_function(at, (any_function_t)(function))
#define IS_OPTIONAL_FUNCTION(at, function) ((function) == NULL || IS_FUNCTION(at, function))

static bool are_functions(const struct examination *at,
			  const struct opwest_bundle_descriptor *descriptor)
{
	return IS_FUNCTION(at, descriptor->prepare) && IS_FUNCTION(at, descriptor->open) &&
	       IS_FUNCTION(at, descriptor->run) && IS_FUNCTION(at, descriptor->close) &&
	       IS_FUNCTION(at, descriptor->status) && IS_FUNCTION(at, descriptor->placed) &&
	       IS_OPTIONAL_FUNCTION(at, descriptor->reset) &&
	       IS_OPTIONAL_FUNCTION(at, descriptor->cancel) &&
	       IS_OPTIONAL_FUNCTION(at, descriptor->observe);
}

static bool is_tensor(const struct examination *at, const struct opwest_tensor *tensor)
{
	const size_t element = opwest_dtype_size(tensor->dtype);

	if (element == 0U || tensor->size % element != 0U) {
		return wrong(at, tensor->dtype, tensor->size, 0);
	}
	return is_string(at, tensor->name) && ARRAY_FITS(at, tensor->shape, tensor->rank) &&
	       ARRAY_FITS(at, tensor->quantization, tensor->quantization != NULL ? 1U : 0U);
}

static bool are_tensors(const struct examination *at, const struct opwest_tensor *tensors,
			uint16_t count, uint32_t size, int32_t detail)
{
	uint64_t sum = 0U;

	if (!ARRAY_FITS(at, tensors, count)) {
		return false;
	}
	for (uint16_t i = 0U; i < count; i++) {
		if (!is_tensor(at, &tensors[i])) {
			return false;
		}
		sum += tensors[i].size;
	}
	return is_number(at, sum, size, detail);
}

/* One pool after another, each at its alignment. */
static bool are_pools(const struct examination *at, const struct opwest_model *model,
		      const struct opwest_bundle_abi *abi)
{
	uint64_t sum = 0U;
	uint32_t most = 1U;

	if (model->pool_count > OPWEST_BUNDLE_MOST_POOLS) {
		return wrong(at, model->pool_count, OPWEST_BUNDLE_MOST_POOLS, 0);
	}
	if (!ARRAY_FITS(at, model->pools, model->pool_count)) {
		return false;
	}
	for (uint16_t i = 0U; i < model->pool_count; i++) {
		const struct opwest_pool *const pool = &model->pools[i];

		if (!opwest_bundle_is_power(pool->align)) {
			return wrong(at, pool->align, 1U, 0);
		}
		if (!is_string(at, pool->name)) {
			return false;
		}
		sum = ((sum + pool->align - 1U) & ~((uint64_t)pool->align - 1U)) + pool->size;
		most = pool->align > most ? pool->align : most;
	}
	if (abi->pools_align == 0U) { /* without pools */
		most = model->pool_count == 0U ? 0U : most;
	}
	return is_number(at, sum, abi->pools_size, OPWEST_BUNDLE_AT_POOLS_SIZE) &&
	       is_number(at, most, abi->pools_align, OPWEST_BUNDLE_AT_POOLS_ALIGN);
}

static bool are_devices(const struct examination *at, const struct opwest_model *model)
{
	if (!ARRAY_FITS(at, model->devices, model->device_count)) {
		return false;
	}
	for (uint16_t i = 0U; i < model->device_count; i++) {
		const struct opwest_device *const device = &model->devices[i];

		if (!is_string(at, device->name) ||
		    (device->type != NULL && !is_string(at, device->type))) {
			return false;
		}
	}
	return true;
}

static bool are_operators(const struct examination *at, const struct opwest_model *model)
{
	if (!ARRAY_FITS(at, model->operators, model->operator_count) ||
	    !ARRAY_FITS(at, model->steps, model->step_count)) {
		return false;
	}
	for (uint16_t i = 0U; i < model->operator_count; i++) {
		if (!is_string(at, model->operators[i].name)) {
			return false;
		}
	}
	for (uint16_t i = 0U; i < model->step_count; i++) {
		if (model->steps[i].operator_index >= model->operator_count) {
			return wrong(at, model->steps[i].operator_index, model->operator_count, 0);
		}
	}
	return true;
}

static bool is_model(const struct examination *at, const struct opwest_model *model,
		     const struct opwest_bundle_header *header)
{
	const struct opwest_bundle_abi *const abi = &header->abi;

	if (!ARRAY_FITS(at, model, 1U) || !is_string(at, model->name)) {
		return false;
	}
	if (strcmp(model->name, header->name) != 0) {
		return wrong(at, (uintptr_t)model->name, 0U, OPWEST_BUNDLE_AT_NAME);
	}
	return is_number(at, model->version, abi->metadata_version,
			 OPWEST_BUNDLE_AT_METADATA_VERSION) &&
	       is_number(at, model->device_count, abi->device_count,
			 OPWEST_BUNDLE_AT_DEVICE_COUNT) &&
	       is_number(at, model->input_count, abi->input_count, OPWEST_BUNDLE_AT_INPUT_COUNT) &&
	       is_number(at, model->output_count, abi->output_count,
			 OPWEST_BUNDLE_AT_OUTPUT_COUNT) &&
	       are_tensors(at, model->inputs, model->input_count, abi->inputs_size,
			   OPWEST_BUNDLE_AT_INPUTS_SIZE) &&
	       are_tensors(at, model->outputs, model->output_count, abi->outputs_size,
			   OPWEST_BUNDLE_AT_OUTPUTS_SIZE) &&
	       are_pools(at, model, abi) && are_devices(at, model) && are_operators(at, model);
}

static int digit_of(char character)
{
	if (character >= '0' && character <= '9') {
		return character - '0';
	}
	return character >= 'a' && character <= 'f' ? character - 'a' + 10 : -1;
}

static bool is_build(const struct examination *at, const struct opwest_build *build,
		     const struct opwest_bundle_header *header)
{
	if (!ARRAY_FITS(at, build, 1U) || !is_string(at, build->model_hash)) {
		return false;
	}
	for (size_t i = 0U; i < sizeof(header->model_hash); i++) {
		const char *const digits = &build->model_hash[2U * i];

		/* A string that is too short ends with a NUL, which is no digit. */
		if (digit_of(digits[0]) != header->model_hash[i] >> 4 ||
		    digit_of(digits[1]) != (header->model_hash[i] & 0x0f)) {
			return wrong(at, (uint64_t)i, 0U, OPWEST_BUNDLE_AT_MODEL_HASH);
		}
	}
	return true;
}

static bool are_buffers(const struct examination *at, const struct opwest_details *details)
{
	const struct opwest_model *const model = details->model;

	if (!ARRAY_FITS(at, details->buffers, details->buffer_count)) {
		return false;
	}
	for (uint16_t i = 0U; i < details->buffer_count; i++) {
		const struct opwest_buffer *const buffer = &details->buffers[i];

		if (buffer->pool >= model->pool_count) {
			return wrong(at, buffer->pool, model->pool_count, 0);
		}

		const uint32_t size = model->pools[buffer->pool].size;

		if (buffer->offset > size || buffer->tensor.size > size - buffer->offset) {
			return wrong(at, buffer->offset, size, 0);
		}
		if (!is_tensor(at, &buffer->tensor)) {
			return false;
		}
	}
	return true;
}

static bool are_values(const struct examination *at, const void *const *values,
		       const struct opwest_tensor *tensors, uint16_t count)
{
	if (!ARRAY_FITS(at, values, count)) {
		return false;
	}
	for (uint16_t i = 0U; i < count; i++) {
		if (values[i] == NULL || !is_inside(at, values[i], tensors[i].size, 1U)) {
			return wrong(at, (uintptr_t)values[i], at->extent->begin, 0);
		}
	}
	return true;
}

static bool are_vectors(const struct examination *at,
			const struct opwest_bundle_descriptor *descriptor)
{
	const struct opwest_model *const model = descriptor->details->model;

	if (descriptor->vector_count == 0U) {
		return opwest_bundle_refuse(at->verdict, OPWEST_BUNDLE_NO_VECTOR, 0, 0U, 1U);
	}
	if (!ARRAY_FITS(at, descriptor->vectors, descriptor->vector_count) ||
	    !ARRAY_FITS(at, descriptor->tolerances, model->output_count)) {
		return false;
	}
	for (uint32_t i = 0U; i < descriptor->vector_count; i++) {
		const struct opwest_bundle_vector *const vector = &descriptor->vectors[i];

		if (!are_values(at, vector->inputs, model->inputs, model->input_count) ||
		    !are_values(at, vector->outputs, model->outputs, model->output_count)) {
			return false;
		}
	}
	return true;
}

static bool are_steps(const struct examination *at,
		      const struct opwest_bundle_descriptor *descriptor,
		      const struct opwest_bundle_header *header)
{
	const struct opwest_details *const details = descriptor->details;
	const bool observes = (header->abi.layout & OPWEST_BUNDLE_LAYOUT_STEPS) != 0U;

	if ((descriptor->observe != NULL) != observes ||
	    (descriptor->step_count > 0U && !observes)) {
		return wrong(at, descriptor->step_count, header->abi.layout,
			     OPWEST_BUNDLE_AT_LAYOUT);
	}
	if (!ARRAY_FITS(at, descriptor->steps, descriptor->step_count)) {
		return false;
	}
	for (uint32_t i = 0U; i < descriptor->step_count; i++) {
		const struct opwest_bundle_step *const step = &descriptor->steps[i];

		if (step->buffer >= details->buffer_count) {
			return wrong(at, step->buffer, details->buffer_count, 0);
		}
		if (step->step >= details->model->step_count) {
			return wrong(at, step->step, details->model->step_count, 0);
		}
		if (!is_inside(at, step->expected, details->buffers[step->buffer].tensor.size,
			       1U)) {
			return false;
		}
	}
	return true;
}

bool opwest_bundle_describes(const struct opwest_bundle_descriptor *descriptor,
			     const struct opwest_bundle_extent *extent,
			     const struct opwest_bundle_header *header,
			     struct opwest_bundle_verdict *verdict)
{
	const struct examination at = {.extent = extent, .verdict = verdict};

	return ARRAY_FITS(&at, descriptor, 1U) &&
	       is_number(&at, descriptor->magic, OPWEST_BUNDLE_DESCRIPTOR_MAGIC,
			 OPWEST_BUNDLE_AT_DESCRIPTOR_OFFSET) &&
	       is_number(&at, descriptor->version, header->abi.host_version,
			 OPWEST_BUNDLE_AT_HOST_VERSION) &&
	       /* Version 1, the only one, has this size. */
	       is_number(&at, descriptor->size, sizeof(*descriptor),
			 OPWEST_BUNDLE_AT_HOST_VERSION) &&
	       is_number(&at, descriptor->workspace_size, header->abi.workspace_size,
			 OPWEST_BUNDLE_AT_WORKSPACE_SIZE) &&
	       is_number(&at, descriptor->workspace_align, header->abi.workspace_align,
			 OPWEST_BUNDLE_AT_WORKSPACE_ALIGN) &&
	       are_functions(&at, descriptor) && ARRAY_FITS(&at, descriptor->details, 1U) &&
	       is_model(&at, descriptor->details->model, header) &&
	       is_build(&at, descriptor->details->build, header) &&
	       are_buffers(&at, descriptor->details) && are_vectors(&at, descriptor) &&
	       are_steps(&at, descriptor, header);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <inttypes.h> /* after <stdio.h>, for older versions of newlib */
#include <stdlib.h>
#include <string.h>

#include <opwest/profile.h>

#ifdef __ZEPHYR__
#define PER_THREAD
#else
#define PER_THREAD _Thread_local
#endif

/* The inputs of a step that has not ended, in the order of its arguments. */
struct copy {
	struct copy *next;
	uint16_t step;
	uint16_t device;
	uint8_t bytes[];
};

/* The run of this thread. */
static PER_THREAD struct {
	const struct opwest_details *details;
	const void *const *inputs;
	const void *const *outputs;
	uint8_t *const *pools;
	/* In the order of the calls. */
	struct copy *first;
	struct copy *running;
} run;

static PER_THREAD uint32_t compared;

static const struct opwest_operator *operator_of(uint16_t step)
{
	const struct opwest_model *const model = run.details->model;

	return &model->operators[model->steps[step].operator_index];
}

static bool is_input(const struct opwest_tensor *argument)
{
	return argument->direction == OPWEST_IN && (argument->flags & OPWEST_TENSOR_SCALAR) == 0U;
}

/* Whether a tensor of the interface is in the workspace, and not in the caller's structure. */
static bool is_placed(const struct opwest_tensor *tensor, uint8_t role)
{
	for (uint16_t i = 0U; i < run.details->buffer_count; i++) {
		const struct opwest_buffer *const buffer = &run.details->buffers[i];

		if (buffer->role == role && strcmp(buffer->tensor.name, tensor->name) == 0) {
			return true;
		}
	}
	return false;
}

static const uint8_t *given(const void *const *members, const struct opwest_tensor *tensors,
			    uint16_t index, uint8_t role)
{
	unsigned int member = 0U;

	for (uint16_t i = 0U; i < index; i++) {
		member += is_placed(&tensors[i], role) ? 0U : 1U;
	}
	return members[member];
}

/* The address of a tensor. */
static const uint8_t *place(const struct opwest_binding *binding)
{
	const struct opwest_details *const details = run.details;
	const struct opwest_model *const model = details->model;
	const struct opwest_buffer *buffer;

	switch (binding->kind) {
	case OPWEST_BINDING_INPUT:
		return given(run.inputs, model->inputs, binding->index, OPWEST_BUFFER_INPUT);
	case OPWEST_BINDING_OUTPUT:
		return given(run.outputs, model->outputs, binding->index, OPWEST_BUFFER_OUTPUT);
	case OPWEST_BINDING_CONSTANT:
		return details->constants[binding->index].data;
	case OPWEST_BINDING_BUFFER:
		buffer = &details->buffers[binding->index];
		return run.pools[buffer->pool] + buffer->offset;
	case OPWEST_BINDING_VIEW:
		return place(&details->views[binding->index].base) +
		       details->views[binding->index].offset;
	default:
		return NULL;
	}
}

static const uint8_t *argument_place(uint16_t step, uint16_t argument)
{
	return place(&run.details->step_bindings[step].bindings[argument]);
}

/* Whether a step may write an address: it is part of another argument. */
static bool may_write(uint16_t step, const uint8_t *address)
{
	const struct opwest_operator *const op = operator_of(step);

	for (uint16_t i = 0U; i < op->arg_count; i++) {
		if (op->args[i].direction != OPWEST_IN) {
			const uintptr_t begin = (uintptr_t)argument_place(step, i);

			if ((uintptr_t)address - begin < op->args[i].size) {
				return true;
			}
		}
	}
	return false;
}

/*
 * Also by the other unfinished steps of the device: its queue runs in order, without a wait in
 * between. Earlier ones may write the input after the copy, later ones may reuse its memory.
 */
static bool may_be_written(const struct copy *copy, const uint8_t *address)
{
	for (const struct copy *one = run.first; one != NULL; one = one->next) {
		if (one->device == copy->device && may_write(one->step, address)) {
			return true;
		}
	}
	return false;
}

static struct opwest_input_change change_of(uint16_t step, uint16_t argument, const uint8_t *before,
					    uint32_t byte)
{
	const struct opwest_operator *const op = operator_of(step);
	const struct opwest_tensor *const tensor = &op->args[argument];
	const uint32_t size = (uint32_t)opwest_dtype_size(tensor->dtype);
	const uint32_t begin = byte - byte % size;
	const struct opwest_input_change change = {
		op->name, tensor,         byte / size,
		step,     &before[begin], argument_place(step, argument) + begin,
	};

	return change;
}

#ifdef __ZEPHYR__
void __attribute__((weak)) opwest_input_changed(const struct opwest_input_change *change)
{
	char text[256];

	opwest_input_change_print(text, sizeof(text), change);
	(void)printf("%s\n", text);
}
#endif

/* Report the first change of a step. */
static void compare(const struct copy *copy)
{
	const struct opwest_operator *const op = operator_of(copy->step);
	const uint8_t *before = copy->bytes;

	compared++;
	for (uint16_t i = 0U; i < op->arg_count; i++) {
		if (!is_input(&op->args[i])) {
			continue;
		}

		const uint32_t size = op->args[i].size;
		const uint8_t *const now = argument_place(copy->step, i);

		if (memcmp(now, before, size) != 0) {
			for (uint32_t byte = 0U; byte < size; byte++) {
				if (now[byte] != before[byte] &&
				    !may_be_written(copy, &now[byte])) {
					const struct opwest_input_change change =
						change_of(copy->step, i, before, byte);

					opwest_input_changed(&change);
					return;
				}
			}
		}
		before += size;
	}
}

static void drop(struct copy *copy)
{
	struct copy **at = &run.first;

	while (*at != copy) {
		at = &(*at)->next;
	}
	*at = copy->next;
	free(copy);
}

static void drop_all(void)
{
	while (run.first != NULL) {
		drop(run.first);
	}
}

/* Compare the steps of a device. Those before the first of this wait ended in an earlier one. */
static void waited(const struct opwest_point *wait)
{
	struct copy *next;

	for (struct copy *one = run.first; one != NULL; one = next) {
		next = one->next;
		if (one->device == wait->device && one->step < wait->step) {
			drop(one);
		} else if (one->device == wait->device) {
			compare(one);
		}
	}
}

static void keep(const struct opwest_point *point)
{
	const struct opwest_operator *const op = operator_of(point->step);
	size_t size = 0U;

	for (uint16_t i = 0U; i < op->arg_count; i++) {
		size += is_input(&op->args[i]) ? op->args[i].size : 0U;
	}

	struct copy *const copy = malloc(sizeof(*copy) + size);

	if (copy == NULL) {
		return;
	}
	copy->next = NULL;
	copy->step = point->step;
	copy->device = point->device;

	uint8_t *bytes = copy->bytes;

	for (uint16_t i = 0U; i < op->arg_count; i++) {
		if (is_input(&op->args[i])) {
			memcpy(bytes, argument_place(point->step, i), op->args[i].size);
			bytes += op->args[i].size;
		}
	}

	struct copy **last = &run.first;

	while (*last != NULL) {
		last = &(*last)->next;
	}
	*last = copy;
	run.running = copy;
}

void opwest_input_check_run(const struct opwest_details *details, const void *inputs,
			    const void *outputs, const void *workspace)
{
	drop_all(); /* of a run that failed */
	run.running = NULL;
	run.details = inputs != NULL && outputs != NULL && workspace != NULL ? details : NULL;
	run.inputs = inputs;
	run.outputs = outputs;
	run.pools = workspace;
}

void opwest_input_check_begin(const struct opwest_point *points, uint32_t index)
{
	const struct opwest_point *const point = &points[index];

	if (run.details != NULL &&
	    (point->kind == OPWEST_POINT_STEP || point->kind == OPWEST_POINT_LAUNCH)) {
		keep(point);
	}
}

void opwest_input_check_end(const struct opwest_point *points, uint32_t index)
{
	const struct opwest_point *const point = &points[index];

	if (run.details == NULL) {
		return;
	}
	switch (point->kind) {
	case OPWEST_POINT_STEP:
		if (run.running != NULL) {
			compare(run.running);
			drop(run.running);
		}
		break;
	case OPWEST_POINT_WAIT:
		waited(point);
		break;
	case OPWEST_POINT_RUN:
		drop_all();
		break;
	default:
		break;
	}
	run.running = NULL;
}

uint32_t opwest_input_check_count(void)
{
	return compared;
}

bool opwest_input_check_find(const void *address, struct opwest_input_change *change)
{
	for (const struct copy *copy = run.first; copy != NULL; copy = copy->next) {
		const struct opwest_operator *const op = operator_of(copy->step);

		for (uint16_t i = 0U; i < op->arg_count; i++) {
			const uint8_t *const begin = argument_place(copy->step, i);
			const uintptr_t byte = (uintptr_t)address - (uintptr_t)begin;

			if (is_input(&op->args[i]) && byte < op->args[i].size) {
				*change = change_of(copy->step, i, begin, (uint32_t)byte);
				change->after = NULL;
				return true;
			}
		}
	}
	return false;
}

/* Print an element as a number; float16 and bfloat16 as their bits. */
static void print_element(char *text, size_t size, uint8_t dtype, const void *element)
{
	union {
		uint8_t u8;
		int8_t i8;
		uint16_t u16;
		int16_t i16;
		uint32_t u32;
		int32_t i32;
		uint64_t u64;
		int64_t i64;
		float f32;
		double f64;
	} value;

	memcpy(&value, element, opwest_dtype_size(dtype));
	switch (dtype) {
	case OPWEST_INT8:
		(void)snprintf(text, size, "%d", value.i8);
		break;
	case OPWEST_INT16:
		(void)snprintf(text, size, "%d", value.i16);
		break;
	case OPWEST_INT32:
		(void)snprintf(text, size, "%" PRId32, value.i32);
		break;
	case OPWEST_INT64:
		(void)snprintf(text, size, "%lld", (long long)value.i64);
		break;
	case OPWEST_UINT16:
		(void)snprintf(text, size, "%u", value.u16);
		break;
	case OPWEST_UINT32:
		(void)snprintf(text, size, "%" PRIu32, value.u32);
		break;
	case OPWEST_UINT64:
		(void)snprintf(text, size, "%llu", (unsigned long long)value.u64);
		break;
	case OPWEST_FLOAT32:
		(void)snprintf(text, size, "%.9g", (double)value.f32);
		break;
	case OPWEST_FLOAT64:
		(void)snprintf(text, size, "%.17g", value.f64);
		break;
	case OPWEST_FLOAT16:
	case OPWEST_BFLOAT16:
		(void)snprintf(text, size, "0x%04x", value.u16);
		break;
	default:
		(void)snprintf(text, size, "%u", value.u8);
		break;
	}
}

void opwest_input_change_print(char *text, size_t size, const struct opwest_input_change *change)
{
	char before[32];
	char after[32];

	print_element(before, sizeof(before), change->argument->dtype, change->before);
	if (change->after == NULL) {
		(void)snprintf(text, size,
			       "step %u (%s) wrote its input '%s': element %" PRIu32
			       ", which is %s, is in read-only memory",
			       change->step, change->operator_name, change->argument->name,
			       change->element, before);
		return;
	}
	print_element(after, sizeof(after), change->argument->dtype, change->after);
	(void)snprintf(text, size,
		       "step %u (%s) wrote its input '%s': element %" PRIu32 " was %s, is %s",
		       change->step, change->operator_name, change->argument->name, change->element,
		       before, after);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run a bundle's golden vectors on a machine of QEMU, without an operating system: the smallest host. The emulator
 * loads the file at SLOT. The start and the linker script are those of opwest/tuning/qemu.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opwest/bundle.h>
#include <opwest/bundle_format.h>
#include <opwest/compare.h>

#include "image.h"

#define MEMORY 65536U

static uint8_t storage[MEMORY] __attribute__((aligned(64)));
static uint8_t result[16384] __attribute__((aligned(16)));
static uint32_t used;

#ifdef REFERENCE
/* The operator of the model, linked with the ordinary C library. */
int32_t functions(const float *input, float *output);
#endif

static void print_number(const char *before, uint32_t number, const char *after)
{
	char text[12];
	char *at = text + sizeof(text);

	*--at = '\0';
	do {
		*--at = (char)('0' + number % 10U);
		number /= 10U;
	} while (number != 0U);
	print(before);
	print(at);
	print(after);
}

static uint8_t *allocate(uint32_t size, uint32_t align)
{
	used = (used + align - 1U) / align * align;

	uint8_t *const found = &storage[used];

	used += size;
	return found;
}

static void log_failure(const char *model, uint16_t step, int32_t code)
{
	print(model);
	print_number(": step ", step, "");
	print_number(" failed: ", (uint32_t)-code, "\n");
}

static void log_hook(const char *model, const char *device, const char *hook, int32_t code)
{
	(void)device;
	(void)hook;
	print_number(model, (uint32_t)-code, ": a hook failed\n");
}

static const struct opwest_host host = {
	.version = OPWEST_HOST_VERSION,
	.size = sizeof(struct opwest_host),
	.log_failure = log_failure,
	.log_hook = log_hook,
};

static const struct opwest_bundle_descriptor *descriptor;
static struct opwest_bundle_workspace *workspace;
static uint8_t *pools[8];
static uint32_t wrong_steps, compared_steps;

/* Compare the results of steps, as firmware does: exactly. */
static void ended(struct opwest_bundle_observer *observer, uint32_t point)
{
	(void)observer;
	for (uint32_t i = 0; i < descriptor->step_count; i++) {
		const struct opwest_bundle_step *const step = &descriptor->steps[i];
		const struct opwest_buffer *const buffer = &descriptor->details->buffers[step->buffer];
		const uint8_t *const expected = step->expected;

		if (step->point != point) {
			continue;
		}
		compared_steps++;
		for (uint32_t k = 0; k < buffer->tensor.size; k++) {
			if (pools[buffer->pool][buffer->offset + k] != expected[k]) {
				wrong_steps++;
				break;
			}
		}
	}
}

static struct opwest_bundle_observer observer = {ended};

static bool is_aligned(const void *data, const struct opwest_tensor *tensor)
{
	return (uintptr_t)data % OPWEST_TENSOR_ALIGN(tensor->flags) == 0U;
}

#ifdef REFERENCE
/* The number of results that differ from those of the ordinary library, bit by bit; all NaNs are equal. */
static uint32_t differing(const float *input, const float *found, uint32_t count)
{
	static float expected[4096];
	uint32_t differ = 0;

	functions(input, expected);
	for (uint32_t i = 0; i < count; i++) {
		union {
			float value;
			uint32_t bits;
		} a = {.value = found[i]}, b = {.value = expected[i]};
		const bool both = (a.bits << 1) > 0xff000000U && (b.bits << 1) > 0xff000000U;

		differ += !both && a.bits != b.bits;
	}
	return differ;
}
#endif

static bool run_vector(uint32_t number)
{
	const struct opwest_bundle_vector *const vector = &descriptor->vectors[number];
	const struct opwest_model *const model = descriptor->details->model;
	void *outputs[16];
	uint32_t at = 0;
	bool good = true;

	if (vector->resets && descriptor->reset != NULL && descriptor->reset(workspace) != 0) {
		return false;
	}
	for (uint32_t i = 0; i < model->input_count; i++) {
		good = good && is_aligned(vector->inputs[i], &model->inputs[i]);
	}
	for (uint32_t i = 0; i < model->output_count; i++) {
		outputs[i] = &result[at];
		at += (model->outputs[i].size + 15U) / 16U * 16U;
	}

	const int rc = descriptor->run(vector->inputs, outputs, workspace, NULL);

	if (rc != 0) {
		print_number("run failed: ", (uint32_t)-rc, "\n");
		return false;
	}
	for (uint32_t i = 0; i < model->output_count; i++) {
		const struct opwest_tensor *const tensor = &model->outputs[i];
		const uint32_t elements = tensor->size / (uint32_t)opwest_dtype_size(tensor->dtype);
		uint32_t first;

		good = good && opwest_compare(tensor->dtype, outputs[i], vector->outputs[i], elements,
					      descriptor->tolerances[i], &first) == 0U;
	}
#ifdef REFERENCE
	print_number("differing from the ordinary library: ",
		     differing(vector->inputs[0], outputs[0], model->outputs[0].size / 4U), "\n");
#endif
	return good;
}

static uint32_t word(uint32_t offset)
{
	const uint8_t *const at = (const uint8_t *)SLOT + offset;

	return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static bool prepared(void)
{
	const struct opwest_model *model;

	if (word(0) != OPWEST_BUNDLE_MAGIC || word(16) != (uint32_t)SLOT) {
		print("no bundle for this slot\n");
		return false;
	}
	descriptor = (const struct opwest_bundle_descriptor *)(SLOT + (uintptr_t)word(32));
	if (descriptor->magic != OPWEST_BUNDLE_DESCRIPTOR_MAGIC || descriptor->version != OPWEST_HOST_VERSION ||
	    descriptor->size != sizeof(*descriptor) || descriptor->workspace_size != word(160)) {
		print("no descriptor\n");
		return false;
	}
	model = descriptor->details->model;
	workspace = (void *)allocate(descriptor->workspace_size, descriptor->workspace_align);
	for (uint32_t i = 0; i < model->pool_count; i++) {
		pools[i] = allocate(model->pools[i].size, model->pools[i].align);
	}
	descriptor->prepare(workspace, pools);
	return true;
}

void measure(void)
{
	uint32_t good = 0;

	if (!prepared()) {
		return;
	}

	void *none[16] = {NULL};
	const int early = descriptor->run((const void *const *)none, none, workspace, NULL);
	const int opened = descriptor->open(workspace, NULL, &host);
	const int again = descriptor->open(workspace, NULL, &host);

	print(descriptor->details->model->name);
	print_number(": open ", (uint32_t)-opened, "");
	print_number(", again ", (uint32_t)-again, "");
	print_number(", run before ", (uint32_t)-early, "\n");
	if (descriptor->observe != NULL) {
		descriptor->observe(workspace, &observer);
	}
	for (uint32_t i = 0; i < descriptor->vector_count; i++) {
		good += run_vector(i);
		if (descriptor->observe != NULL) {
			descriptor->observe(workspace, NULL); /* the results of steps are those of vector 0 */
		}
	}
	print_number("good ", good, "");
	print_number(" of ", descriptor->vector_count, "\n");
	if (descriptor->observe != NULL) {
		print_number("steps ", compared_steps, "");
		print_number(", wrong ", wrong_steps, "\n");
	}
	print_number("close ", (uint32_t)-descriptor->close(workspace, NULL), "");
	print_number(", again ", (uint32_t)-descriptor->close(workspace, NULL), "\n");
}

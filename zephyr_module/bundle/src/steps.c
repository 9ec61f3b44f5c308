/* SPDX-License-Identifier: Apache-2.0 */
/* Golden vector 0 with a comparison of tensors after points of the run. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "bundle_internal.h"

/* A part of a tensor of the caller. */
struct part {
	uint16_t point;
	uint16_t buffer;
	uint32_t offset;
	uint32_t size;
	const uint8_t *expected;
};

/* The observer of one run. */
struct watch {
	/* The first member: the image passes its address. */
	struct opwest_bundle_observer observer;
	const struct opwest_bundle_trial *trial;
	/* NULL: the steps of the image. */
	const struct part *part;
	struct opwest_bundle_difference *found;
	/* Of floating-point tensors: no tolerance is declared for those inside of a model. */
	struct opwest_tolerance tolerance;
	bool differs;
	bool has_seen_point;
};

static bool is_float(uint8_t dtype)
{
	return dtype == OPWEST_FLOAT16 || dtype == OPWEST_BFLOAT16 || dtype == OPWEST_FLOAT32 ||
	       dtype == OPWEST_FLOAT64;
}

static void compare(struct watch *watch, uint16_t index, uint16_t step, uint32_t offset,
		    const void *expected, uint32_t size)
{
	const struct opwest_details *const details = watch->trial->descriptor->details;
	const struct opwest_buffer *const buffer = &details->buffers[index];
	const uint8_t dtype = buffer->tensor.dtype;
	const uint32_t element = (uint32_t)opwest_dtype_size(dtype);
	const uint8_t *const got =
		&watch->trial->placement.pools[buffer->pool][buffer->offset + offset];
	const struct opwest_tolerance exact = {0.0, 0.0};
	uint32_t first = 0U;
	const uint32_t count = opwest_compare(dtype, got, expected, size / element,
					      is_float(dtype) ? watch->tolerance : exact, &first);

	if (count == 0U || watch->differs) {
		return;
	}
	watch->differs = true;
	*watch->found = (struct opwest_bundle_difference){
		.operator_name = opwest_model_step_name(details->model, step),
		.tensor = buffer->tensor.name,
		.step = step,
		.element = offset / element + first,
		.count = count,
	};
}

static void ended(struct opwest_bundle_observer *observer, uint32_t point)
{
	struct watch *const watch = (struct watch *)(void *)observer;
	const struct opwest_bundle_descriptor *const descriptor = watch->trial->descriptor;
	const struct part *const part = watch->part;

	if (part != NULL) {
		if (part->point == point && !watch->has_seen_point) {
			watch->has_seen_point = true;
			compare(watch, part->buffer,
				descriptor->details->buffers[part->buffer].first_step, part->offset,
				part->expected, part->size);
		}
		return;
	}
	for (uint32_t i = 0U; i < descriptor->step_count; i++) {
		const struct opwest_bundle_step *const step = &descriptor->steps[i];

		if (step->point == point) {
			compare(watch, step->buffer, step->step, 0U, step->expected,
				descriptor->details->buffers[step->buffer].tensor.size);
		}
	}
}

static struct opwest_tolerance largest(const struct opwest_bundle_descriptor *descriptor)
{
	struct opwest_tolerance most = {0.0, 0.0};

	for (uint16_t i = 0U; i < descriptor->details->model->output_count; i++) {
		const struct opwest_tolerance *const one = &descriptor->tolerances[i];

		most.absolute = one->absolute > most.absolute ? one->absolute : most.absolute;
		most.relative = one->relative > most.relative ? one->relative : most.relative;
	}
	return most;
}

static int observe(struct opwest_bundles *bundles, struct watch *watch)
{
	const struct opwest_bundle_descriptor *const current = bundles->current;
	struct opwest_bundle_trial trial;
	struct opwest_bundle_verdict verdict;
	int rc;

	if (!opwest_bundle_trial_open(bundles, current, &trial, &verdict)) {
		return verdict.fault == OPWEST_BUNDLE_RUN ? (int)verdict.detail : -ENOMEM;
	}
	watch->trial = &trial;
	watch->tolerance = largest(current);
	current->observe(trial.placement.workspace, &watch->observer);
	rc = opwest_bundle_trial_run(&trial, 0U);
	current->observe(trial.placement.workspace, NULL);
	opwest_bundle_trial_close(&trial);
	if (rc == 0 && watch->differs) {
		return -EILSEQ;
	}
	return rc;
}

/* Runs are drained: without memory of the trial, the first session's is used. */
static int check(struct opwest_bundles *bundles, const struct part *part,
		 struct opwest_bundle_difference *found)
{
	struct watch watch = {.observer = {.ended = ended}, .part = part, .found = found};
	int rc;

	opwest_bundle_drain(bundles);
	rc = observe(bundles, &watch);
	opwest_bundle_resume(bundles);
	if (rc == 0 && part != NULL && !watch.has_seen_point) {
		return -ENOENT;
	}
	return rc;
}

int opwest_bundles_check_steps(struct opwest_bundles *bundles,
			       struct opwest_bundle_difference *found)
{
	int rc;

	memset(found, 0, sizeof(*found));
	opwest_port_mutex_lock(&bundles->installation);
	if (bundles->current == NULL) {
		rc = -ENOENT;
	} else if (bundles->current->observe == NULL || bundles->current->step_count == 0U) {
		rc = -ENOTSUP;
	} else {
		rc = check(bundles, NULL, found);
	}
	opwest_port_mutex_unlock(&bundles->installation);
	return rc;
}

static bool is_part(const struct opwest_details *details, const struct part *part)
{
	if (part->buffer >= details->buffer_count) {
		return false;
	}

	const struct opwest_tensor *const tensor = &details->buffers[part->buffer].tensor;
	const uint32_t element = (uint32_t)opwest_dtype_size(tensor->dtype);

	return part->offset <= tensor->size && part->size <= tensor->size - part->offset &&
	       part->offset % element == 0U && part->size % element == 0U;
}

int opwest_bundles_check_part(struct opwest_bundles *bundles, uint16_t point, uint16_t buffer,
			      uint32_t offset, const uint8_t *expected, uint32_t size,
			      struct opwest_bundle_difference *found)
{
	const struct part part = {
		.point = point,
		.buffer = buffer,
		.offset = offset,
		.size = size,
		.expected = expected,
	};
	int rc;

	memset(found, 0, sizeof(*found));
	opwest_port_mutex_lock(&bundles->installation);
	if (bundles->current == NULL) {
		rc = -ENOENT;
	} else if (bundles->current->observe == NULL) {
		rc = -ENOTSUP;
	} else if (!is_part(bundles->current->details, &part)) {
		rc = -ENOENT;
	} else {
		rc = check(bundles, &part, found);
	}
	opwest_port_mutex_unlock(&bundles->installation);
	return rc;
}

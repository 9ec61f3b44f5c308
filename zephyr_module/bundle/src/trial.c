/* SPDX-License-Identifier: Apache-2.0 */
/* Golden vectors, in the memory of the trial or in that of the first session. */
#include <errno.h>
#include <stddef.h>

#include "bundle_internal.h"

/* The memory of the trial has this index in verdicts. */
#define TRIAL (-1)

static bool has_trial(const struct opwest_bundles *bundles)
{
	return bundles->config->trial.memory != NULL;
}

bool opwest_bundle_check_memory(const struct opwest_bundles *bundles,
				const struct opwest_bundle_descriptor *descriptor,
				struct opwest_bundle_verdict *verdict)
{
	struct opwest_bundle_placement placement;
	int32_t index = 0;

	if (has_trial(bundles) || bundles->sessions == NULL) {
		if (!opwest_bundle_place(&bundles->config->trial, descriptor, true, &placement,
					 verdict)) {
			verdict->detail = TRIAL;
			return false;
		}
	}
	for (const struct opwest_session *session = bundles->sessions; session != NULL;
	     session = session->next) {
		const bool with_outputs = index == 0 && !has_trial(bundles);

		if (!opwest_bundle_place(&session->memory, descriptor, with_outputs, &placement,
					 verdict)) {
			verdict->detail = index;
			return false;
		}
		index++;
	}
	return true;
}

bool opwest_bundle_trial_open(struct opwest_bundles *bundles,
			      const struct opwest_bundle_descriptor *descriptor,
			      struct opwest_bundle_trial *trial,
			      struct opwest_bundle_verdict *verdict)
{
	const struct opwest_bundles_config *const config = bundles->config;
	struct opwest_session *const first = has_trial(bundles) ? NULL : bundles->sessions;
	const struct opwest_bundle_memory *const memory =
		first == NULL ? &config->trial : &first->memory;
	int rc;

	trial->descriptor = descriptor;
	if (!opwest_bundle_place(memory, descriptor, true, &trial->placement, verdict)) {
		verdict->detail = first == NULL ? TRIAL : 0;
		return false;
	}
	if (!opwest_bundle_assign(config, descriptor->details->model, trial->devices, verdict)) {
		return false;
	}
	if (first != NULL) {
		opwest_bundle_close_session(first);
	}
	descriptor->prepare(trial->placement.workspace, trial->placement.pools);
	rc = descriptor->open(trial->placement.workspace, trial->devices, config->host);
	if (rc != 0) {
		return opwest_bundle_refuse(verdict, OPWEST_BUNDLE_RUN, rc, 0U, 0U);
	}
	for (uint16_t i = 0U; i < descriptor->details->model->output_count; i++) {
		uint8_t *const placed =
			descriptor->placed(trial->placement.workspace,
					   (uint16_t)(descriptor->details->model->input_count + i));

		if (placed != NULL) {
			trial->placement.outputs[i] = placed;
		}
	}
	return true;
}

int opwest_bundle_trial_run(struct opwest_bundle_trial *trial, uint32_t vector)
{
	return trial->descriptor->run(trial->descriptor->vectors[vector].inputs,
				      trial->placement.outputs, trial->placement.workspace,
				      trial->devices);
}

void opwest_bundle_trial_close(struct opwest_bundle_trial *trial)
{
	(void)trial->descriptor->close(trial->placement.workspace, trial->devices);
}

/* The first different output: found is its index, expected the first different element. */
static bool compare(const struct opwest_bundle_trial *trial, uint32_t vector,
		    struct opwest_bundle_verdict *verdict)
{
	const struct opwest_bundle_descriptor *const descriptor = trial->descriptor;
	const struct opwest_model *const model = descriptor->details->model;

	for (uint16_t i = 0U; i < model->output_count; i++) {
		const struct opwest_tensor *const output = &model->outputs[i];
		const uint32_t count = output->size / (uint32_t)opwest_dtype_size(output->dtype);
		uint32_t first = 0U;

		if (opwest_compare(output->dtype, trial->placement.outputs[i],
				   descriptor->vectors[vector].outputs[i], count,
				   descriptor->tolerances[i], &first) != 0U) {
			return opwest_bundle_refuse(verdict, OPWEST_BUNDLE_VECTOR, (int32_t)vector,
						    i, first);
		}
	}
	return true;
}

static bool try_vector(struct opwest_bundle_trial *trial, uint32_t vector,
		       struct opwest_bundle_verdict *verdict)
{
	const struct opwest_bundle_descriptor *const descriptor = trial->descriptor;
	int rc = 0;

	if (descriptor->vectors[vector].resets && descriptor->reset != NULL) {
		rc = descriptor->reset(trial->placement.workspace);
	}
	if (rc == 0) {
		rc = opwest_bundle_trial_run(trial, vector);
	}
	if (rc != 0) {
		return opwest_bundle_refuse(verdict, OPWEST_BUNDLE_RUN, rc, vector, 0U);
	}
	return compare(trial, vector, verdict);
}

bool opwest_bundle_try(struct opwest_bundles *bundles,
		       const struct opwest_bundle_descriptor *descriptor,
		       struct opwest_bundle_verdict *verdict)
{
	struct opwest_bundle_trial trial;
	bool agrees = true;

	if (!opwest_bundle_trial_open(bundles, descriptor, &trial, verdict)) {
		return false;
	}
	for (uint32_t i = 0U; agrees && i < descriptor->vector_count; i++) {
		agrees = try_vector(&trial, i, verdict);
	}
	opwest_bundle_trial_close(&trial);
	return agrees;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Firmware that contains no model. It runs the current model on its golden vectors, over and over,
 * while a host installs, replaces and rolls back models.
 */
#include <errno.h>
#include <string.h>

#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>

#include <opwest/bundle_keys.h>
#include <opwest/bundle_service.h>
#include <opwest/bundle_storage_zephyr.h>
#include <opwest/bundles.h>

#define MEMORY_SIZE (64 * 1024)
#define OUTPUT_SIZE 1024
#define MAX_OUTPUTS 4
#define PAUSE_MS    100

/* The slots are partitions of the devicetree: see boards/. */
OPWEST_BUNDLE_FLASH_DEFINE(flash, bundle_records, bundle_slot0, bundle_slot1);

OPWEST_ALIGNED(64) static uint8_t session_memory[MEMORY_SIZE];
OPWEST_ALIGNED(64) static uint8_t trial_memory[MEMORY_SIZE];

static const struct opwest_bundles_config config = {
	.storage = &flash.storage,
	.keys = opwest_bundle_keys,
	.key_count = OPWEST_BUNDLE_KEY_COUNT,
	.host = &opwest_bundle_host,
	/* New models are tried here, so that the current one keeps its state. */
	.trial = {.memory = trial_memory, .size = sizeof(trial_memory)},
};

static struct opwest_bundles bundles;
static struct opwest_session session = {
	.memory = {.memory = session_memory, .size = sizeof(session_memory)},
};

/* The memory of the outputs: aligned for any type. */
OPWEST_ALIGNED(16) static uint8_t outputs[MAX_OUTPUTS][OUTPUT_SIZE];

/* Runs one golden vector, and returns whether all outputs are as expected; or a negative errno. */
static int run_vector(const struct opwest_bundle_descriptor *descriptor, uint32_t index)
{
	const struct opwest_model *const model = descriptor->details->model;
	const struct opwest_bundle_vector *const vector = &descriptor->vectors[index];
	void *pointers[MAX_OUTPUTS];
	int rc;

	if (model->output_count > MAX_OUTPUTS) {
		return -ENOMEM;
	}
	for (uint16_t i = 0; i < model->output_count; i++) {
		if (model->outputs[i].size > OUTPUT_SIZE) {
			return -ENOMEM;
		}
		pointers[i] = outputs[i];
	}
	rc = vector->resets ? opwest_session_reset(&session) : 0;
	if (rc == 0) {
		rc = opwest_session_run_held(&session, vector->inputs, pointers);
	}
	for (uint16_t i = 0; i < model->output_count && rc == 0; i++) {
		if (opwest_compare(model->outputs[i].dtype, outputs[i], vector->outputs[i],
				   model->outputs[i].size /
					   opwest_dtype_size(model->outputs[i].dtype),
				   descriptor->tolerances[i], NULL) != 0U) {
			return 0;
		}
	}
	return rc == 0 ? 1 : rc;
}

/* Runs the current model once on each of its vectors; prints a line if it is a new one. */
static void run_model(void)
{
	static char shown[OPWEST_BUNDLE_NAME_SIZE];
	static uint32_t shown_version;
	const struct opwest_bundle_descriptor *descriptor;
	const struct opwest_bundle_header *header;
	uint32_t equal = 0U;
	int rc = opwest_session_hold(&session, &descriptor, &header);

	if (rc != 0) {
		return; /* no model yet */
	}
	for (uint32_t i = 0; i < descriptor->vector_count && rc >= 0; i++) {
		rc = run_vector(descriptor, i);
		equal += rc > 0 ? 1U : 0U;
	}
	if (rc < 0) {
		printk("%s: run returned %d\n", header->name, rc);
	} else if (strcmp(shown, header->name) != 0 || shown_version != header->version ||
		   equal != descriptor->vector_count) {
		printk("%s %u.%u.%u: %u of %u golden vectors are equal\n", header->name,
		       header->version >> 24, (header->version >> 16) & 0xffU,
		       header->version & 0xffffU, equal, descriptor->vector_count);
		strcpy(shown, header->name);
		shown_version = header->version;
	}
	opwest_session_release(&session);
}

int main(void)
{
	int rc;

	rc = opwest_bundles_start(&bundles, &config);
	if (rc != 0 && rc != -ENOENT) {
		printk("error: opwest_bundles_start returned %d\n", rc);
		return rc;
	}
	printk("%s\n", rc == 0 ? "a model is installed" : "no model is installed");
	rc = opwest_session_add(&bundles, &session);
	if (rc != 0) {
		printk("error: opwest_session_add returned %d\n", rc);
		return rc;
	}
	opwest_bundles_serve(&bundles);
	while (true) {
		run_model();
		k_msleep(PAUSE_MS);
	}
	return 0;
}

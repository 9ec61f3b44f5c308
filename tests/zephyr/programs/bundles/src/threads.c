/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <zephyr/kernel.h>

#include "bundles.h"

#define STACK_SIZE 4096

/* What a thread saw. */
struct seen {
	uint32_t old_runs;
	uint32_t new_runs;
	/* Failed runs, outputs of neither model, and outputs of the old model after the new one. */
	uint32_t bad;
	int first_error;
};

K_THREAD_STACK_ARRAY_DEFINE(stacks, SESSIONS, STACK_SIZE);
static struct k_thread threads[SESSIONS];
static struct seen seen[SESSIONS];
static const struct cases *old_cases;
static const struct cases *new_cases;
static uint64_t interface_hash;
static volatile bool stops;

static void work(void *first, void *second, void *third)
{
	const uint32_t index = (uint32_t)(uintptr_t)first;
	struct seen *const own = &seen[index];
	uint32_t output[16];

	ARG_UNUSED(second);
	ARG_UNUSED(third);
	for (uint32_t i = index; !stops; i = (i + 1U) % old_cases->count) {
		const void *const inputs[] = {input_of(old_cases, i)};
		void *const outputs[] = {output};

		memset(output, 0xa5, sizeof(output));
		const int rc = opwest_session_run(&sessions[index], interface_hash, inputs, outputs);

		if (rc != 0) {
			own->bad++;
			own->first_error = own->first_error != 0 ? own->first_error : rc;
		} else if (memcmp(output, output_of(new_cases, i), new_cases->output_size) == 0) {
			own->new_runs++;
		} else if (memcmp(output, output_of(old_cases, i), old_cases->output_size) == 0 &&
			   own->new_runs == 0U) {
			own->old_runs++;
		} else {
			own->bad++;
		}
	}
}

void run_threads(uint32_t part, uint32_t old_part, uint32_t new_part)
{
	const struct opwest_bundle_descriptor *descriptor;
	const struct opwest_bundle_header *header;
	struct opwest_bundle_verdict verdict;
	uint32_t runs;
	int rc = opwest_session_hold(&sessions[0], &descriptor, &header);

	if (rc != 0) {
		printk("threads: %d\n", rc);
		return;
	}
	interface_hash = header->interface_hash;
	opwest_session_release(&sessions[0]);
	old_cases = cases_of(old_part);
	new_cases = cases_of(new_part);
	memset(seen, 0, sizeof(seen));
	stops = false;
	for (uint32_t i = 0U; i < SESSIONS; i++) {
		(void)k_thread_create(&threads[i], stacks[i], STACK_SIZE, work, (void *)(uintptr_t)i,
				      NULL, NULL, CONFIG_MAIN_THREAD_PRIORITY, 0, K_NO_WAIT);
	}
	k_msleep(50);
	/* All threads have one priority, with time slices: they run during the installation. */
	runs = seen[0].old_runs + seen[1].old_runs;
	rc = install(part, 64U, &verdict);
	k_msleep(50);
	stops = true;
	for (uint32_t i = 0U; i < SESSIONS; i++) {
		(void)k_thread_join(&threads[i], K_FOREVER);
		printk("thread %u: %u old, %u new, %u bad, error %d\n", i, seen[i].old_runs,
		       seen[i].new_runs, seen[i].bad, seen[i].first_error);
	}
	printk("threads: %d fault %u, %u runs before, %u in the installation\n", rc, verdict.fault,
	       runs, seen[0].old_runs + seen[1].old_runs - runs);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What the cases share. */
#include <errno.h>
#include <string.h>

#include "cases.h"

/* Results before their job. */
#define CLEAR 0xa5

/* More activations than any case leaves. */
#define MAX_ACTIVATIONS 8

static struct opwest_port_thread other;

bool conformance_expect(struct conformance_check *check, long got, long wanted, const char *text,
			const char *file, int line)
{
	if (got == wanted) {
		return true;
	}
	*check = (struct conformance_check){
		.wrong = text, .file = file, .line = line, .got = got, .wanted = wanted};
	return false;
}

bool conformance_inject(const struct device *dev, enum opwest_conformance_fault fault,
			uint32_t after)
{
	const struct opwest_conformance *const suite = &opwest_conformance;

	if (suite->inject == NULL || (fault == OPWEST_CONFORMANCE_HOLD && suite->release == NULL) ||
	    (fault == OPWEST_CONFORMANCE_FAIL && suite->error == 0)) {
		return false;
	}
	return suite->inject(dev, fault, after) == 0;
}

uint32_t conformance_depth(const struct device *dev)
{
	struct opwest_accelerator_info info;

	return opwest_accelerator_info(dev, &info) == 0 ? info.queue_depth : 0U;
}

uint32_t conformance_jobs(const struct device *dev, uint32_t most)
{
	const uint32_t depth = conformance_depth(dev);

	return depth != 0U && depth < most ? depth : most;
}

int conformance_launch(const struct device *dev, uint32_t job, const struct opwest_program *program)
{
	const uint32_t depth = conformance_depth(dev);
	const struct opwest_launch launch = {
		.dev = dev,
		.program = program,
		.timeout_ms = LONG_MS,
		.step = (uint16_t)job,
		.slot = depth == 0U ? 0U : (uint16_t)(job % depth),
	};

	return opwest_conformance.launch(&launch, job);
}

int conformance_wait(const struct device *dev, uint32_t leave, int32_t timeout_ms)
{
	int rc;

	do {
		rc = opwest_accelerator_sync(dev, leave, timeout_ms);
	} while (rc == -EINTR);
	return rc;
}

void conformance_clear(const struct device *dev)
{
	for (uint32_t job = 0; job < opwest_conformance.jobs; job++) {
		size_t size = 0U;
		uint8_t *const result = opwest_conformance.result(dev, job, &size);

		memset(result, CLEAR, size);
	}
}

bool conformance_is_clear(const struct device *dev, uint32_t job)
{
	size_t size = 0U;
	const uint8_t *const result = opwest_conformance.result(dev, job, &size);

	for (size_t i = 0; i < size; i++) {
		if (result[i] != CLEAR) {
			return false;
		}
	}
	return true;
}

int conformance_start(opwest_port_entry_t function, const struct device *dev)
{
	conformance_prepare(&other);
	return opwest_port_thread_start(&other, function, dev);
}

void conformance_join(void)
{
	opwest_port_thread_join(&other);
}

int conformance_activate(const struct device *dev)
{
	int rc = opwest_port_device_power(dev, true);

	if (rc < 0) {
		return rc;
	}
	rc = opwest_accelerator_activate(dev);
	if (rc != 0) {
		(void)opwest_port_device_power(dev, false);
	}
	return rc;
}

int conformance_deactivate(const struct device *dev)
{
	const int rc = opwest_accelerator_deactivate(dev);
	const int power = rc == -EPERM ? 0 : opwest_port_device_power(dev, false);

	return rc != 0 ? rc : power < 0 ? power : 0;
}

/* A driver without a count of activations would never return -EPERM. */
static void settle(const struct device *dev)
{
	if (opwest_conformance.reset != NULL) {
		opwest_conformance.reset(dev);
	}
	(void)opwest_accelerator_close(dev);
	for (int i = 0; i < MAX_ACTIVATIONS && conformance_deactivate(dev) == 0; i++) {
	}
}

struct conformance_check conformance_run(conformance_case_t function, const struct device *dev)
{
	struct conformance_check check = {.skipped = NULL};

	conformance_clear(dev);
	function(&check, dev);
	settle(dev);
	return check;
}

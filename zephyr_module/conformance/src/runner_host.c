/* SPDX-License-Identifier: Apache-2.0 */
/* Runs all cases, or those that the arguments name, on all devices; without Zephyr. */
#include <stdio.h>
#include <string.h>

#include <opwest/model.h>

#include "cases.h"

static const struct {
	const char *name;
	conformance_case_t function;
} cases[] = {
#define ENTRY(name) {#name, conformance_##name},
	CONFORMANCE_CASES(ENTRY)
#undef ENTRY
};

void conformance_prepare(struct opwest_port_thread *thread)
{
	(void)thread;
}

bool conformance_in_isr(void)
{
	return false;
}

bool conformance_wake_in_isr(const struct device *dev)
{
	(void)dev;
	return false;
}

int conformance_priority(void)
{
	return 0;
}

bool conformance_has_priorities(void)
{
	return false;
}

bool conformance_has_power(void)
{
	return false;
}

static bool is_named(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], name) == 0) {
			return true;
		}
	}
	return argc < 2;
}

int main(int argc, char **argv)
{
	unsigned int counts[3] = {0U, 0U, 0U};

	for (size_t i = 0; i < OPWEST_ARRAY_SIZE(cases); i++) {
		for (uint32_t d = 0; d < opwest_conformance.device_count; d++) {
			const struct device *const dev = opwest_conformance.devices[d];

			if (!is_named(cases[i].name, argc, argv)) {
				continue;
			}

			const struct conformance_check check =
				conformance_run(cases[i].function, dev);

			if (check.wrong != NULL) {
				counts[1]++;
				printf("FAIL %s on %s: %s:%d: %s is %ld, expected %ld\n",
				       cases[i].name, dev->name, check.file, check.line,
				       check.wrong, check.got, check.wanted);
			} else if (check.skipped != NULL) {
				counts[2]++;
				printf("SKIP %s on %s: %s\n", cases[i].name, dev->name,
				       check.skipped);
			} else {
				counts[0]++;
				printf("PASS %s on %s\n", cases[i].name, dev->name);
			}
			(void)fflush(stdout);
		}
	}
	printf("%u passed, %u failed, %u skipped\n", counts[0], counts[1], counts[2]);
	return counts[1] != 0U || counts[0] == 0U ? 1 : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract of accelerators on Zephyr: the drivers, the models and the kernel are real, the work
 * of the devices is emulated. Prints a line per check.
 */
#include "contract.h"

#define STACK 2048

int checks;
int failures;

static K_THREAD_STACK_ARRAY_DEFINE(stacks, HELPERS, STACK);
static struct k_thread threads[HELPERS];

void check_range(const char *area, const char *what, int64_t found, int64_t least, int64_t most)
{
	const bool right = found >= least && found <= most;

	checks++;
	failures += right ? 0 : 1;
	printf("%s: %s: %s: %d", right ? "ok" : "WRONG", area, what, (int)found);
	if (least == most) {
		printf(right ? "\n" : ", not %d\n", (int)least);
	} else {
		printf(", of %d to %d\n", (int)least, (int)most);
	}
}

void check(const char *area, const char *what, int64_t found, int64_t expected)
{
	check_range(area, what, found, expected, expected);
}

struct opwest_npu_emul_counts counts_of(const struct device *npu)
{
	struct opwest_npu_emul_counts counts;

	opwest_npu_emul_count(npu, &counts);
	return counts;
}

bool equals(const int8_t *result, int8_t start, int (*f)(int x))
{
	for (int i = 0; i < COUNT; i++) {
		if (result[i] != f(start + i % 4)) {
			return false;
		}
	}
	return true;
}

static void begin(void *entry, void *second, void *third)
{
	ARG_UNUSED(second);
	ARG_UNUSED(third);
	((void (*)(void))entry)();
}

void start_helper(enum helper helper, int priority, int32_t delay_ms, void (*entry)(void))
{
	(void)k_thread_create(&threads[helper], stacks[helper],
			      K_THREAD_STACK_SIZEOF(stacks[helper]), begin, (void *)entry, NULL,
			      NULL, priority, 0, K_MSEC(delay_ms));
}

void join_helper(enum helper helper)
{
	(void)k_thread_join(&threads[helper], K_FOREVER);
}

void own_for_a_while(void)
{
	(void)opwest_accelerator_open(NPU(npu_slow), OPWEST_FOREVER);
	(void)k_msleep(100);
	(void)opwest_accelerator_close(NPU(npu_slow));
}

int main(void)
{
	switching();
	queues();
	power();
	cancels();
	notifications();
	timeouts();
	latency();
	printf("done: %d checks, %d wrong\n", checks, failures);
	return 0;
}

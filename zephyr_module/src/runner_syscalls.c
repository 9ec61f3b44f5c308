/* SPDX-License-Identifier: Apache-2.0 */
/* Verification of the arguments of user threads. An invalid one ends the thread (kernel oops). */
#include <string.h>

#include <zephyr/kernel.h>

#include <opwest/runner.h>

#include "syscalls_zephyr.h"

#define VERIFY_RUNNER(runner) K_OOPS(K_SYSCALL_OBJ(runner, K_OBJ_DRIVER_OPWEST_RUNNER))

/*
 * The pointers are copied before they are verified, because other threads can change them later.
 * NULL is an error of opwest_runner_run(), also where the thread may read address 0.
 */
static inline int z_vrfy_opwest_runner_run(const struct device *runner, const void *const *inputs,
					   void *const *outputs, int32_t timeout_ms)
{
	const void *from[OPWEST_RUNNER_TENSORS];
	void *to[OPWEST_RUNNER_TENSORS];
	const struct opwest_runner_config *config;
	const struct opwest_runner_tensor *tensor;

	VERIFY_RUNNER(runner);
	config = (const struct opwest_runner_config *)runner->config;
	tensor = config->tensors;
	K_OOPS(k_usermode_from_copy(from, inputs, config->input_count * sizeof(from[0])));
	K_OOPS(k_usermode_from_copy(to, outputs, config->output_count * sizeof(to[0])));
	for (uint16_t i = 0; i < config->input_count; i++, tensor++) {
		K_OOPS(from[i] != NULL && K_SYSCALL_MEMORY_READ(from[i], tensor->size));
	}
	for (uint16_t i = 0; i < config->output_count; i++, tensor++) {
		K_OOPS(to[i] != NULL && K_SYSCALL_MEMORY_WRITE(to[i], tensor->size));
	}
	return z_impl_opwest_runner_run(runner, from, to, timeout_ms);
}

static inline int z_vrfy_opwest_runner_cancel(const struct device *runner)
{
	VERIFY_RUNNER(runner);
	return z_impl_opwest_runner_cancel(runner);
}

static inline int z_vrfy_opwest_runner_status(const struct device *runner,
					      struct opwest_status *status)
{
	struct opwest_status copy;

	VERIFY_RUNNER(runner);
	memset(&copy, 0, sizeof(copy)); /* its padding is copied too */
	(void)z_impl_opwest_runner_status(runner, &copy);
	K_OOPS(k_usermode_to_copy(status, &copy, sizeof(copy)));
	return 0;
}

#if __has_include(<zephyr/syscall_list.h>)
#include <zephyr/syscalls/opwest_runner_run_mrsh.c>
#include <zephyr/syscalls/opwest_runner_cancel_mrsh.c>
#include <zephyr/syscalls/opwest_runner_status_mrsh.c>
#else /* before Zephyr 3.7 */
#include <syscalls/opwest_runner_run_mrsh.c>
#include <syscalls/opwest_runner_cancel_mrsh.c>
#include <syscalls/opwest_runner_status_mrsh.c>
#endif

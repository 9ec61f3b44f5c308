/* SPDX-License-Identifier: Apache-2.0 */
#include <zephyr/fatal.h>
#include <zephyr/sys/printk.h>

#include "userspace.h"

#define STACK 2048

K_APPMEM_PARTITION_DEFINE(user_partition);
static K_APP_BMEM(user_partition) volatile int failures;

static K_THREAD_STACK_ARRAY_DEFINE(stacks, 2, STACK);
static struct k_thread threads[2];
static struct k_mem_domain domain;
static const void *const *allowed;
static size_t allowed_count;
static volatile k_tid_t faulted;

#if __has_include(<zephyr/version.h>)
typedef struct arch_esf registers_t;
#else /* before Zephyr 3.7 */
typedef z_arch_esf_t registers_t;
#endif

/* The kernel ends the thread after the return. */
void k_sys_fatal_error_handler(unsigned int reason, const registers_t *esf)
{
	ARG_UNUSED(esf);
	faulted = k_current_get();
	printk("fault: reason %u\n", reason);
}

void check(const char *name, bool passed, int found)
{
	if (!passed) {
		failures++;
	}
	printk("%s: %s (%d)\n", passed ? "ok" : "FAILED", name, found);
}

void permit(const void *const *objects, size_t count)
{
	allowed = objects;
	allowed_count = count;
}

static void enter(void *entry, void *argument, void *unused)
{
	ARG_UNUSED(unused);
	((user_entry_t)entry)((intptr_t)argument);
}

void begin(int number, user_entry_t entry, int priority, intptr_t argument)
{
	struct k_thread *const thread = &threads[number];

	faulted = NULL;
	(void)k_thread_create(thread, stacks[number], STACK, enter, (void *)entry,
			      (void *)argument, NULL, priority, K_USER, K_FOREVER);
	(void)k_mem_domain_add_thread(&domain, thread);
	for (size_t i = 0; i < allowed_count; i++) {
		k_object_access_grant(allowed[i], thread);
	}
	k_thread_start(thread);
}

void end(int number, const char *name, bool faults)
{
	const int rc = k_thread_join(&threads[number], K_SECONDS(20));

	check(name, rc == 0 && (faulted == &threads[number]) == faults, rc);
	faulted = NULL;
}

void run_user(const char *name, user_entry_t entry, intptr_t argument, bool faults)
{
	begin(FIRST, entry, 5, argument);
	end(FIRST, name, faults);
}

void kill(int number)
{
	k_thread_abort(&threads[number]);
}

int main(void)
{
	struct k_mem_partition *partitions[] = {
#if Z_LIBC_PARTITION_EXISTS
		&z_libc_partition,
#endif
		&user_partition,
	};

	(void)k_mem_domain_init(&domain, ARRAY_SIZE(partitions), partitions);
	test_model();
	test_runner();
	test_class();
	printk("done: %d failed\n", failures);
	return 0;
}

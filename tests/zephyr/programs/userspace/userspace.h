/* SPDX-License-Identifier: Apache-2.0 */
/* User threads with the outcome that a test expects of them. */
#ifndef USERSPACE_H_
#define USERSPACE_H_

#include <stdbool.h>
#include <stdint.h>

#include <zephyr/app_memory/app_memdomain.h>
#include <zephyr/kernel.h>

/** The memory of the user threads. */
extern struct k_mem_partition user_partition;

/** Prints a check and counts it if it failed; for all threads. */
void check(const char *name, bool passed, int found);

/** Checks a value. */
static inline void check_equal(const char *name, int found, int expected)
{
	check(name, found == expected, found);
}

/** The function of a user thread. */
typedef void (*user_entry_t)(intptr_t argument);

/** The threads that main() can start: two run at the same time. */
enum { FIRST, SECOND };

/** The objects that the threads of begin() have permission for. */
void permit(const void *const *objects, size_t count);

/** Starts a user thread. */
void begin(int number, user_entry_t entry, int priority, intptr_t argument);

/** Waits for a thread; prints whether its end is the expected one. */
void end(int number, const char *name, bool faults);

/** Starts a user thread and waits for it. */
void run_user(const char *name, user_entry_t entry, intptr_t argument, bool faults);

/** Ends a thread from outside. */
void kill(int number);

void test_model(void);
void test_runner(void);
void test_class(void);

#endif

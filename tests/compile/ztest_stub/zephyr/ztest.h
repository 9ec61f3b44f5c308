/* SPDX-License-Identifier: Apache-2.0 */
/* A stub of Zephyr's ztest for hosts: the parts that emitted suites use. ztest.c contains main(). */
#pragma once

#include <setjmp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* The values of longjmp. */
enum stub_outcome {
	STUB_PASS,
	STUB_SKIP,
	STUB_FAIL,
};

struct stub_test {
	const char *name;
	void (*run)(void);
	struct stub_test *next;
};

extern struct stub_test *stub_tests;
extern void (*stub_after)(void *fixture);
extern jmp_buf stub_end;

#define ZTEST(suite, name)                                                                         \
	static void suite##_##name(void);                                                          \
	static void __attribute__((constructor)) stub_add_##suite##_##name(void)                   \
	{                                                                                          \
		static struct stub_test test = {#name, suite##_##name, NULL};                      \
		test.next = stub_tests;                                                            \
		stub_tests = &test;                                                                \
	}                                                                                          \
	static void suite##_##name(void)

#define ZTEST_SUITE(suite, predicate, setup, before, after, teardown)                              \
	static void __attribute__((constructor)) stub_suite_##suite(void)                          \
	{                                                                                          \
		stub_after = after;                                                                \
	}                                                                                          \
	struct stub_suite_##suite

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

#define TC_PRINT(...) (void)printf(__VA_ARGS__)

/* Fail the running test with the message that follows the condition. */
#define STUB_CHECK(condition, ...)                                                                 \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			(void)printf("line %d: ", __LINE__);                                       \
			(void)printf(__VA_ARGS__);                                                 \
			(void)printf("\n");                                                        \
			longjmp(stub_end, STUB_FAIL);                                              \
		}                                                                                  \
	} while (0)

#define zassert_true(condition, ...) STUB_CHECK(condition, __VA_ARGS__)
#define zassert_false(condition, ...) STUB_CHECK(!(condition), __VA_ARGS__)
#define zassert_equal(a, b, ...) STUB_CHECK((a) == (b), __VA_ARGS__)
#define zassert_is_null(pointer, ...) STUB_CHECK((pointer) == NULL, __VA_ARGS__)
#define zassert_mem_equal(a, b, size, ...) STUB_CHECK(memcmp(a, b, size) == 0, __VA_ARGS__)

static inline void ztest_test_skip(void)
{
	longjmp(stub_end, STUB_SKIP);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main function of programs with cases: PROGRAM CASE runs one of them, PROGRAM runs each in a process of its own.
 * Both print "done" at the end.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPECT(condition)                                                                          \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: false: %s\n", __FILE__, __LINE__, #condition);     \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#define EXPECT_CODE(call, code)                                                                    \
	do {                                                                                       \
		const int returned = (call);                                                       \
                                                                                                   \
		if (returned != (code)) {                                                          \
			fprintf(stderr, "%s:%d: %s is %d, expected %d\n", __FILE__, __LINE__,      \
				#call, returned, (code));                                          \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

struct program_case {
	const char *name;
	void (*run)(void);
};

#define CASE(name) {#name, case_##name}

/* Programs define them as functions if the cases have a common begin and end. */
#ifndef BEFORE_CASE
#define BEFORE_CASE() (void)0
#define AFTER_CASE()  (void)0
#endif

static inline void run_case(const struct program_case *one)
{
	BEFORE_CASE();
	one->run();
	AFTER_CASE();
}

static inline int run_cases(const struct program_case *cases, size_t count, int argc, char **argv)
{
	bool failed = argc > 1;

	for (size_t i = 0; i < count; i++) {
		if (argc > 1 && strcmp(argv[1], cases[i].name) == 0) {
			run_case(&cases[i]);
			failed = false;
		} else if (argc == 1) {
			const pid_t child = fork();
			int status = -1;

			if (child == 0) {
				run_case(&cases[i]);
				exit(0);
			}
			if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
				fprintf(stderr, "case %s failed\n", cases[i].name);
				failed = true;
			}
		}
	}
	if (!failed) {
		puts("done");
	}
	return failed;
}

#define RUN_CASES(argc, argv, ...)                                                                 \
	run_cases((const struct program_case[]){__VA_ARGS__},                                      \
		  sizeof((const struct program_case[]){__VA_ARGS__}) / sizeof(struct program_case), argc, argv)

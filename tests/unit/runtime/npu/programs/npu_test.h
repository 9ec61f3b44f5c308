/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the test programs of the emulated accelerator. */
#ifndef NPU_TEST_H_
#define NPU_TEST_H_

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opwest/npu_emul.h>
#include <opwest/npu_emul_host.h>

/* Stops at the first failed check. */
#define EXPECT(expression, expected)                                                               \
	do {                                                                                       \
		const long got_ = (long)(expression);                                              \
		const long want_ = (long)(expected);                                               \
		if (got_ != want_) {                                                               \
			fprintf(stderr, "%s:%d: %s is %ld, expected %ld\n", __FILE__, __LINE__,    \
				#expression, got_, want_);                                         \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#define EXPECT_TRUE(expression) EXPECT((expression) ? 1 : 0, 1)

/* Header and one kernel, as make_program.py writes them. */
#define PROGRAM_HEADER(kernels)                                                                    \
	'O', 'N', 'P', 'U', 1, 0, (kernels), 0, 16 + 16 * (kernels), 0, 0, 0, 0, 0, 0, 0
#define PROGRAM_KERNEL(id, kind, shift, multiplier)                                                \
	(id), 0, (kind), (shift), (multiplier), 0, 0, 0, 0, 0, 0x80, 0x7f, 0, 0, 0, 0

enum { DENSE, RELU, ADD, CONV };

/* Kernels 0 to 3 are dense, relu, add, conv2d; B scales dense otherwise and has no conv2d. */
static const uint8_t bytes_a[] = {
	PROGRAM_HEADER(4),          PROGRAM_KERNEL(DENSE, 1, 0, 1), PROGRAM_KERNEL(RELU, 4, 0, 1),
	PROGRAM_KERNEL(ADD, 3, 0, 1), PROGRAM_KERNEL(CONV, 2, 0, 1),
};
static const uint8_t bytes_b[] = {
	PROGRAM_HEADER(3),
	PROGRAM_KERNEL(DENSE, 1, 1, 3),
	PROGRAM_KERNEL(RELU, 4, 0, 1),
	PROGRAM_KERNEL(ADD, 3, 0, 1),
};
static const struct opwest_program program_a = {"a", bytes_a, sizeof(bytes_a)};
static const struct opwest_program program_b = {"b", bytes_b, sizeof(bytes_b)};

static inline void start(const struct device *dev, const struct opwest_program *program)
{
	EXPECT(opwest_accelerator_activate(dev), 0);
	EXPECT(opwest_accelerator_check(dev, program), 0);
	EXPECT(opwest_accelerator_open(dev, OPWEST_FOREVER), 0);
	EXPECT(opwest_accelerator_load(dev, program), 0);
}

static inline void stop(const struct device *dev)
{
	EXPECT(opwest_accelerator_close(dev), 0);
	EXPECT(opwest_accelerator_deactivate(dev), 0);
}

/* The content of outputs until their job is done. */
#define GARBAGE 0x5a

static const int8_t x[4] = {1, -2, 3, -4};

static inline struct opwest_npu_emul_counts counts_of(const struct device *dev)
{
	struct opwest_npu_emul_counts counts;

	opwest_npu_emul_count(dev, &counts);
	return counts;
}

static inline void wait_for_jobs(const struct device *dev, uint32_t started)
{
	while (counts_of(dev).calls[OPWEST_NPU_EMUL_JOB] < started) {
		opwest_port_sleep_us(100);
	}
}

static inline void expect_bytes(const int8_t *got, int a, int b, int c, int d)
{
	EXPECT(got[0], a);
	EXPECT(got[1], b);
	EXPECT(got[2], c);
	EXPECT(got[3], d);
}

/* A case has a name and a function; the program's argument names one. */
struct test_case {
	const char *name;
	void (*run)(void);
};

static inline int run_case(const struct test_case *cases, size_t count, int argc, char **argv)
{
	for (size_t i = 0; i < count && argc == 2; i++) {
		if (strcmp(cases[i].name, argv[1]) == 0) {
			cases[i].run();
			printf("ok\n");
			return 0;
		}
	}
	fprintf(stderr, "no such case\n");
	return 2;
}

#endif /* NPU_TEST_H_ */

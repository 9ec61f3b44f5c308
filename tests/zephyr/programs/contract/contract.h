/* SPDX-License-Identifier: Apache-2.0 */
/* Checks, and the models of the test: their devices are parameters. */
#ifndef CONTRACT_H_
#define CONTRACT_H_

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <opwest/npu_emul.h>
#include <zephyr/device.h>
#include <zephyr/kernel.h>

#define NPU(label) DEVICE_DT_GET(DT_NODELABEL(label))
#define COUNT 16

extern int checks;
extern int failures;

/* A line per result: found, and expected. */
void check(const char *area, const char *what, int64_t found, int64_t expected);
/* The same for a range. */
void check_range(const char *area, const char *what, int64_t found, int64_t least, int64_t most);

/* The counts of a device. */
struct opwest_npu_emul_counts counts_of(const struct device *npu);

/* Microseconds by the clock of the kernel, which advances by ticks of 1 ms. */
static inline int64_t now_us(void)
{
	return (int64_t)k_ticks_to_us_floor64((uint64_t)k_uptime_ticks());
}

/* A model whose tensors x and y are in its workspace: m_once() runs it with x[i] = start + i. */
#define USE_MODEL(m, M)                                                                            \
	M##_WORKSPACE_DEFINE(m##_workspace);                                                       \
	static struct m##_devices m##_on;                                                          \
	static int8_t m##_result[COUNT];                                                           \
                                                                                                   \
	static inline int m##_begin(const struct device *npu)                                      \
	{                                                                                          \
		m##_on.npu = npu;                                                                  \
		return m##_open(&m##_workspace, &m##_on);                                          \
	}                                                                                          \
                                                                                                   \
	static inline int m##_once(int8_t start)                                                   \
	{                                                                                          \
		for (int i = 0; i < COUNT && m##_workspace.opened; i++) {                          \
			m##_workspace.input.x[i] = (int8_t)(start + i % 4);                        \
		}                                                                                  \
		const int rc = m##_run(&(struct m##_inputs){0}, &(struct m##_outputs){0},          \
				       &m##_workspace, &m##_on);                                   \
		if (rc == 0) {                                                                     \
			memcpy(m##_result, m##_workspace.output.y, COUNT);                         \
		}                                                                                  \
		return rc;                                                                         \
	}                                                                                          \
                                                                                                   \
	static inline int m##_end(void)                                                            \
	{                                                                                          \
		return m##_close(&m##_workspace, &m##_on);                                         \
	}

/* What the program of the model `one` computes. */
static inline int one_of(int x)
{
	return 2 * x + 1;
}

/* Returns whether every result is what `f` computes of its number. */
bool equals(const int8_t *result, int8_t start, int (*f)(int x));

/* A thread of the test. It has to be joined before it is started again. */
enum helper {
	HELPER_A,
	HELPER_B,
	HELPER_C,
	HELPERS,
};
void start_helper(enum helper helper, int priority, int32_t delay_ms, void (*entry)(void));
void join_helper(enum helper helper);
/* Owns npu_slow for 100 ms, in a helper. */
void own_for_a_while(void);

void switching(void);
void queues(void);
void power(void);
void cancels(void);
void notifications(void);
void timeouts(void);
void latency(void);

#endif /* CONTRACT_H_ */

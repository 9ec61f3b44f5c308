/* SPDX-License-Identifier: Apache-2.0 */
/* Several threads and one device, or two: for the thread sanitizer as well. */
#include <pthread.h>

#include "npu_test.h"

#define RUNS 10000

OPWEST_NPU_EMUL_HOST_DEFINE(shared, 0);
OPWEST_NPU_EMUL_HOST_DEFINE(shared_too, 0);
OPWEST_NPU_EMUL_HOST_DEFINE_QUEUE(tight, 0, 1, 10000, OPWEST_SWITCH_LOAD);

/* Accessed only by the owner of `shared`. */
static uint32_t owned_count;
static int8_t owned_tensor[4] = {0, 0, 0, 0};
static const int8_t ones[4] = {1, 1, 1, 1};

static void run_in_threads(void *(*first)(void *), void *(*second)(void *))
{
	pthread_t threads[2];

	EXPECT(pthread_create(&threads[0], NULL, first, NULL), 0);
	EXPECT(pthread_create(&threads[1], NULL, second, NULL), 0);
	EXPECT(pthread_join(threads[0], NULL), 0);
	EXPECT(pthread_join(threads[1], NULL), 0);
}

static void *own(void *unused)
{
	for (int i = 0; i < RUNS; i++) {
		EXPECT(opwest_accelerator_activate(&shared), 0);
		EXPECT(opwest_accelerator_check(&shared, &program_a), 0);
		EXPECT(opwest_accelerator_open(&shared, OPWEST_FOREVER), 0);
		EXPECT(opwest_accelerator_load(&shared, &program_a), 0);
		owned_count++;
		if (i % 16 == 0) {
			EXPECT(opwest_npu_emul_add(&shared, ADD, owned_tensor, ones, owned_tensor,
						   4),
			       0);
			EXPECT(opwest_accelerator_sync(&shared, 0U, OPWEST_FOREVER), 0);
			if (owned_tensor[0] == 100) {
				memset(owned_tensor, 0, sizeof(owned_tensor));
			}
		}
		EXPECT(opwest_accelerator_close(&shared), 0);
		EXPECT(opwest_accelerator_deactivate(&shared), 0);
	}
	return unused;
}

/* A device has one owner at a time: 10,000 times each. */
static void exclusive(void)
{
	struct opwest_npu_emul_counts counts;

	run_in_threads(own, own);
	EXPECT(owned_count, 2 * RUNS);
	EXPECT(owned_tensor[3], 2 * RUNS / 16 % 100);
	opwest_npu_emul_count(&shared, &counts);
	for (int point = OPWEST_NPU_EMUL_ACTIVATE; point <= OPWEST_NPU_EMUL_DEACTIVATE; point++) {
		EXPECT(counts.calls[point], counts.succeeded[point]);
	}
	EXPECT(counts.calls[OPWEST_NPU_EMUL_CLOSE], 2 * RUNS);
	EXPECT(counts.aborted, 0);
}

static pthread_t run_thread(void *(*function)(void *))
{
	pthread_t thread;

	EXPECT(pthread_create(&thread, NULL, function, NULL), 0);
	return thread;
}

static void *wait_in_vain(void *unused)
{
	EXPECT(opwest_accelerator_open(&shared, 10000), -EPERM);
	return unused;
}

/* A wait for a device that is then deactivated fails. */
static void deactivated(void)
{
	pthread_t waiting;

	start(&shared, &program_a);
	waiting = run_thread(wait_in_vain);
	opwest_port_sleep_us(60000);
	EXPECT(opwest_accelerator_deactivate(&shared), 0);
	EXPECT(opwest_accelerator_close(&shared), 0);
	EXPECT(pthread_join(waiting, NULL), 0);
	start(&shared, &program_b);
	stop(&shared);
}

static void *enqueue_tight(void *unused)
{
	static int8_t y[4];
	int rc = 0;

	while (rc == 0) {
		rc = opwest_npu_emul_relu(&tight, RELU, ones, y, 4);
	}
	EXPECT(rc, -EPERM);
	return unused;
}

/* close() also ends the wait for space in the queue. */
static void closed_while_full(void)
{
	const int64_t from = opwest_port_clock_us();
	pthread_t enqueuing;

	start(&tight, &program_a);
	opwest_npu_emul_hang(&tight, 0);
	enqueuing = run_thread(enqueue_tight);
	opwest_port_sleep_us(60000);
	EXPECT(opwest_accelerator_close(&tight), 0);
	EXPECT(pthread_join(enqueuing, NULL), 0);
	EXPECT_TRUE(opwest_port_clock_us() - from < 5000000);
	EXPECT(opwest_accelerator_deactivate(&tight), 0);
}

/* Runs like generated code: undoes successful calls after any failure. Returns the first error. */
static int one_run(const struct opwest_program *program)
{
	int8_t y[4];
	int8_t z[4];
	int rc = opwest_accelerator_activate(&shared);

	if (rc != 0) {
		return rc;
	}
	rc = opwest_accelerator_activate(&shared_too);
	if (rc == 0) {
		rc = opwest_accelerator_open(&shared, OPWEST_FOREVER);
		if (rc == 0) {
			rc = opwest_accelerator_open(&shared_too, OPWEST_FOREVER);
			if (rc == 0) {
				const int codes[] = {
					opwest_accelerator_load(&shared, program),
					opwest_accelerator_load(&shared_too, program),
					opwest_npu_emul_relu(&shared, RELU, ones, y, 4),
					opwest_npu_emul_relu(&shared_too, RELU, ones, z, 4),
					opwest_accelerator_sync(&shared, 0U, 50),
					opwest_accelerator_sync(&shared_too, 0U, 50),
				};

				for (int i = 0; rc == 0 && i < 6; i++) {
					rc = codes[i];
				}
				(void)opwest_accelerator_close(&shared_too);
				EXPECT_TRUE(rc != 0 || (y[0] == 1 && z[3] == 1));
			}
			(void)opwest_accelerator_close(&shared);
		}
		(void)opwest_accelerator_deactivate(&shared_too);
	}
	(void)opwest_accelerator_deactivate(&shared);
	return rc;
}

static void *run_faulty(void *unused)
{
	for (int i = 0; i < RUNS / 5; i++) {
		const int rc = one_run(&program_a);

		EXPECT_TRUE(rc == 0 || rc == -EIO || rc == -ETIMEDOUT);
		if (i % 3 == 0) {
			(void)opwest_npu_emul_inject(
				i % 2 == 0 ? &shared : &shared_too,
				(enum opwest_npu_emul_point)(i / 3 % OPWEST_NPU_EMUL_POINTS),
				(uint32_t)(i % 4), -EIO);
		}
		if (i % 400 == 1) {
			opwest_npu_emul_hang(i % 800 == 1 ? &shared : &shared_too, 0);
		}
	}
	return unused;
}

/* After any failure in any thread the devices work. */
static void faulty(void)
{
	struct opwest_npu_emul_counts counts;

	run_in_threads(run_faulty, run_faulty);
	opwest_npu_emul_count(&shared, &counts);
	EXPECT(counts.succeeded[OPWEST_NPU_EMUL_ACTIVATE],
	       counts.calls[OPWEST_NPU_EMUL_DEACTIVATE]);
	EXPECT(counts.succeeded[OPWEST_NPU_EMUL_OPEN], counts.calls[OPWEST_NPU_EMUL_CLOSE]);
	EXPECT_TRUE(counts.aborted > 0);
	opwest_npu_emul_reset(&shared);
	opwest_npu_emul_reset(&shared_too);
	EXPECT(one_run(&program_b), 0);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		{"exclusive", exclusive},
		{"deactivated", deactivated},
		{"closed_while_full", closed_while_full},
		{"faulty", faulty},
	};

	return run_case(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads run the current model while models are installed and rolled back:
 * threads one.bundle two.bundle bad.bundle KEY ROUNDS TRIAL. one is for slot 0, two and bad are for
 * slot 1; the golden vectors of bad differ. TRIAL is 0 without memory for trials.
 */
#include <errno.h>
#include <pthread.h>

#include "given.h"
#include "simulated.h"

#define RUNNERS 2
#define PART    512U

#define REQUIRE(condition)                                                                         \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

struct runner {
	pthread_t thread;
	struct opwest_session session;
	uint8_t memory[800];
	uint32_t runs[2];
	uint32_t switches;
	uint32_t held;
	bool holds;
};

static struct opwest_bundles bundles;
static struct runner runners[RUNNERS];
static bool ends;

/* Check that all outputs are of one model, and return its index. */
static int model_of(const int32_t *y, float z, int8_t first)
{
	const int32_t mark = y[0] - 3 * first;

	REQUIRE(mark == 1000 || mark == 2000);
	REQUIRE(y[1] == 3 + mark && y[2] == 6 + mark && y[3] == 9 + mark);
	REQUIRE(z == (float)(first + 6));
	return mark == 1000 ? 0 : 1;
}

static int run_held(struct runner *runner, const void *const *inputs, void *const *outputs)
{
	const struct opwest_bundle_descriptor *descriptor;
	const struct opwest_bundle_header *header;
	const int32_t *const y = outputs[0];
	int rc;
	int32_t before;

	REQUIRE(opwest_session_hold(&runner->session, &descriptor, &header) == 0);
	REQUIRE(strcmp(descriptor->details->model->name, header->name) == 0);
	rc = opwest_session_run_held(&runner->session, inputs, outputs);
	before = y[0];
	for (int i = 0; i < 3 && rc == 0; i++) {
		rc = opwest_session_run_held(&runner->session, inputs, outputs);
		REQUIRE(y[0] == before);
	}
	runner->held++;
	opwest_session_release(&runner->session);
	return rc;
}

static void *run(void *argument)
{
	struct runner *const runner = argument;
	int8_t first = 0;
	int latest = 0;

	while (!__atomic_load_n(&ends, __ATOMIC_ACQUIRE)) {
		const int8_t x[4] = {first, 1, 2, 3};
		int32_t y[4] = {0};
		float z = 0.0F;
		const void *const inputs[] = {x};
		void *const outputs[] = {y, &z};
		const int rc = runner->holds && first % 8 == 0
				       ? run_held(runner, inputs, outputs)
				       : opwest_session_run(&runner->session, 0x1122334455667788ULL,
							    inputs, outputs);

		REQUIRE(rc == 0);

		const int model = model_of(y, z, first);

		__atomic_fetch_add(&runner->runs[model], 1U, __ATOMIC_RELAXED);
		runner->switches += model != latest;
		latest = model;
		first = (int8_t)((first + 1) % 100);
	}
	return NULL;
}

/* Another thread is in a function of the session: all return -EBUSY and change nothing. */
static void refuse_running(struct opwest_session *session)
{
	const struct opwest_bundle_descriptor *descriptor = NULL;
	const int8_t x[4] = {0};
	int32_t y[4] = {0};
	float z = 0.0F;
	const void *const inputs[] = {x};
	void *const outputs[] = {y, &z};
	struct opwest_status status;
	struct opwest_session before;

	REQUIRE(opwest_port_take(&session->running));
	before = *session;
	REQUIRE(opwest_session_run(session, 0x1122334455667788ULL, inputs, outputs) == -EBUSY);
	REQUIRE(opwest_session_run_held(session, inputs, outputs) == -EBUSY);
	REQUIRE(opwest_session_hold(session, &descriptor, NULL) == -EBUSY && descriptor == NULL);
	REQUIRE(opwest_session_reset(session) == -EBUSY);
	REQUIRE(opwest_session_status(session, &status) == -EBUSY);
	REQUIRE(memcmp(&before, session, sizeof(before)) == 0 && y[1] == 0);
	opwest_port_give(&session->running);
	REQUIRE(opwest_session_run(session, 0x1122334455667788ULL, inputs, outputs) == 0);
	REQUIRE(opwest_session_status(session, &status) == 0 && status.code == 0);
}

static void *share(void *session)
{
	for (int i = 0; i < 2000; i++) {
		const int8_t x[4] = {(int8_t)(i % 100), 1, 2, 3};
		int32_t y[4] = {0};
		float z = 0.0F;
		const void *const inputs[] = {x};
		void *const outputs[] = {y, &z};
		const int rc = opwest_session_run(session, 0x1122334455667788ULL, inputs, outputs);

		REQUIRE(rc == 0 || rc == -EBUSY);
		if (rc == 0) {
			(void)model_of(y, z, x[0]);
		}
	}
	return NULL;
}

/* Two threads with one session: no run of one changes that of the other. */
static void share_session(struct opwest_session *session)
{
	pthread_t threads[2];

	for (int i = 0; i < 2; i++) {
		REQUIRE(pthread_create(&threads[i], NULL, share, session) == 0);
	}
	for (int i = 0; i < 2; i++) {
		(void)pthread_join(threads[i], NULL);
	}
}

static int install(const struct file *file)
{
	struct opwest_bundle_verdict verdict;
	const int rc = send_file(&bundles, OPWEST_BUNDLE_NO_SLOT, file, PART);

	return rc != 0 ? rc : opwest_bundles_install(&bundles, &verdict);
}

/* Wait until every runner has executed the current model. */
static void wait_for_runs(int model)
{
	for (int i = 0; i < RUNNERS; i++) {
		const uint32_t before = __atomic_load_n(&runners[i].runs[model], __ATOMIC_RELAXED);

		while (__atomic_load_n(&runners[i].runs[model], __ATOMIC_RELAXED) < before + 2U) {
			opwest_port_sleep_us(10U);
		}
	}
}

int main(int argc, char **argv)
{
	static struct opwest_bundle_key key;
	static uint8_t trial[1200];
	struct opwest_bundles_config config = {
		.storage = &simulated_storage,
		.keys = &key,
		.key_count = 1U,
		.host = &opwest_bundle_host,
	};
	struct file files[3];
	uint32_t switches = 0U;
	uint32_t runs = 0U;
	struct opwest_bundle_info info;
	struct opwest_bundle_record record;

	REQUIRE(argc == 7);
	(void)bytes_of(argv[4], key.bytes);
	if (atoi(argv[6]) != 0) {
		config.trial = (struct opwest_bundle_memory){.memory = trial, .size = sizeof(trial)};
	}
	for (int i = 0; i < 3; i++) {
		files[i] = read_file(argv[i + 1]);
	}
	simulated_open(2U, 4U, 0xffU);
	REQUIRE(opwest_bundles_start(&bundles, &config) == -ENOENT);
	for (int i = 0; i < RUNNERS; i++) {
		runners[i].session.memory.memory = runners[i].memory;
		runners[i].session.memory.size = sizeof(runners[i].memory);
		runners[i].holds = i == 1;
		REQUIRE(opwest_session_add(&bundles, &runners[i].session) == 0);
	}
	REQUIRE(install(&files[0]) == 0);
	refuse_running(&runners[0].session);
	share_session(&runners[0].session);
	for (int i = 0; i < RUNNERS; i++) {
		REQUIRE(pthread_create(&runners[i].thread, NULL, run, &runners[i]) == 0);
	}

	const int rounds = atoi(argv[5]);

	for (int round = 0; round < rounds; round++) {
		struct opwest_bundle_verdict verdict;

		wait_for_runs(0);
		REQUIRE(install(&files[2]) == -EBADMSG);
		wait_for_runs(0);
		REQUIRE(install(&files[1]) == 0);
		wait_for_runs(1);
		opwest_bundles_state(&bundles, &record);
		REQUIRE(record.active == 1U && opwest_bundles_list(&bundles, 1U, &info) == 0);
		REQUIRE(opwest_bundles_healthy(&bundles) == 0);
		if (round % 2 == 0) {
			REQUIRE(opwest_bundles_roll_back(&bundles, &verdict) == 0);
		} else {
			REQUIRE(install(&files[0]) == 0);
		}
	}
	wait_for_runs(0);
	__atomic_store_n(&ends, true, __ATOMIC_RELEASE);
	for (int i = 0; i < RUNNERS; i++) {
		(void)pthread_join(runners[i].thread, NULL);
		runs += runners[i].runs[0] + runners[i].runs[1];
		switches += runners[i].switches;
	}
	REQUIRE(runners[1].held > 0U);
	printf("%u runs, %u switches\n", runs, switches);
	return 0;
}

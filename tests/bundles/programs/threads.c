/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands of console.c: threads run the current model while models are installed and rolled back.
 * The marks of the models are 1000 and 2000.
 */
#include <errno.h>
#include <pthread.h>

#include "given.h"

#define RUNNERS 2

struct runner {
	pthread_t thread;
	struct opwest_session *session;
	uint32_t runs[2];
	uint32_t switches;
	uint32_t held;
	bool holds;
};

#define INTERFACE 0x1122334455667788ULL

struct outputs {
	int32_t y[4];
	float z;
};

/* Run the model of stand_in.c, which is held or not. */
static int run_model(struct opwest_session *session, bool held, int8_t first,
		     struct outputs *found)
{
	const int8_t x[4] = {first, 1, 2, 3};
	const void *const inputs[] = {x};
	void *const outputs[] = {found->y, &found->z};

	memset(found, 0, sizeof(*found));
	return held ? opwest_session_run_held(session, inputs, outputs)
		    : opwest_session_run(session, INTERFACE, inputs, outputs);
}

static struct runner runners[RUNNERS];
static bool ends;

/* Check that all outputs are of one model, and return its index. */
static int model_of(const struct outputs *found, int8_t first)
{
	const int32_t mark = found->y[0] - 3 * first;

	REQUIRE(mark == 1000 || mark == 2000);
	REQUIRE(found->y[1] == 3 + mark && found->y[2] == 6 + mark && found->y[3] == 9 + mark);
	REQUIRE(found->z == (float)(first + 6));
	return mark == 1000 ? 0 : 1;
}

static int run_held(struct runner *runner, int8_t first, struct outputs *found)
{
	const struct opwest_bundle_descriptor *descriptor;
	const struct opwest_bundle_header *header;
	struct outputs before;
	int rc;

	REQUIRE(opwest_session_hold(runner->session, &descriptor, &header) == 0);
	REQUIRE(strcmp(descriptor->details->model->name, header->name) == 0);
	rc = run_model(runner->session, true, first, &before);
	*found = before;
	for (int i = 0; i < 3 && rc == 0; i++) {
		rc = run_model(runner->session, true, first, found);
		REQUIRE(found->y[0] == before.y[0]);
	}
	runner->held++;
	opwest_session_release(runner->session);
	return rc;
}

static void *run(void *argument)
{
	struct runner *const runner = argument;
	int8_t first = 0;
	int latest = 0;

	while (!__atomic_load_n(&ends, __ATOMIC_ACQUIRE)) {
		struct outputs found;

		if (runner->holds && first % 8 == 0) {
			REQUIRE(run_held(runner, first, &found) == 0);
		} else {
			REQUIRE(run_model(runner->session, false, first, &found) == 0);
		}

		const int model = model_of(&found, first);

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
	struct outputs found;
	struct opwest_status status;
	struct opwest_session before;

	REQUIRE(opwest_port_take(&session->running));
	before = *session;
	REQUIRE(run_model(session, false, 0, &found) == -EBUSY && found.y[1] == 0);
	REQUIRE(run_model(session, true, 0, &found) == -EBUSY && found.y[1] == 0);
	REQUIRE(opwest_session_hold(session, &descriptor, NULL) == -EBUSY && descriptor == NULL);
	REQUIRE(opwest_session_reset(session) == -EBUSY);
	REQUIRE(opwest_session_status(session, &status) == -EBUSY);
	REQUIRE(memcmp(&before, session, sizeof(before)) == 0);
	opwest_port_give(&session->running);
	REQUIRE(run_model(session, false, 0, &found) == 0);
	REQUIRE(opwest_session_status(session, &status) == 0 && status.code == 0);
}

static void *share(void *session)
{
	for (int i = 0; i < 2000; i++) {
		const int8_t first = (int8_t)(i % 100);
		struct outputs found;
		const int rc = run_model(session, false, first, &found);

		REQUIRE(rc == 0 || rc == -EBUSY);
		if (rc == 0) {
			(void)model_of(&found, first);
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

static void start_runners(struct opwest_session *sessions)
{
	for (int i = 0; i < RUNNERS; i++) {
		runners[i].session = &sessions[i];
		runners[i].holds = i == 1;
		REQUIRE(pthread_create(&runners[i].thread, NULL, run, &runners[i]) == 0);
	}
}

static void end_runners(void)
{
	uint32_t switches = 0U;
	uint32_t runs = 0U;

	__atomic_store_n(&ends, true, __ATOMIC_RELEASE);
	for (int i = 0; i < RUNNERS; i++) {
		(void)pthread_join(runners[i].thread, NULL);
		runs += runners[i].runs[0] + runners[i].runs[1];
		switches += runners[i].switches;
	}
	printf("0 %u %u %u\n", runs, switches, runners[1].held);
}

bool thread_command(char **words, struct opwest_session *sessions)
{
	if (IS("share")) {
		refuse_running(&sessions[0]);
		share_session(&sessions[0]);
	} else if (IS("runners")) {
		start_runners(sessions);
	} else if (IS("await")) {
		wait_for_runs(atoi(words[1]));
	} else if (IS("end")) {
		end_runners();
		return true;
	} else {
		return false;
	}
	printf("0\n");
	return true;
}

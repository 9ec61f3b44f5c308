/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Power cuts at every operation of the storage:
 * cuts old.bundle new.bundle other.bundle double|single KEY STRIDE.
 *
 * old is for slot 0, new for slot 1 (the same name, a newer version), other for slot 1 (another name).
 * Every scenario is executed once to count its operations, then with a cut before, inside and after
 * each of them (in an installation every STRIDE-th one and the last four). After each cut the board
 * starts: the old or the new model runs, its golden vectors agree, and another installation succeeds.
 * With `double`, the power is cut a second time at every operation of the start and of that
 * installation.
 */
#include <errno.h>

#include "given.h"
#include "simulated.h"

#define PART      256U
#define FRACTIONS 3U

#define REQUIRE(condition)                                                                         \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s: %s (%s)\n", __FILE__, __LINE__, doing,         \
				#condition, where);                                                \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

struct scenario {
	const char *name;
	/* Prepares the slots, without disturbances. */
	void (*prepare)(void);
	/* The operations. */
	void (*act)(void);
	/* The models that may run after a cut: the marks of old, new and other; 0: none may run. */
	int32_t allowed[3];
	bool waits;
	uint8_t crash_limit;
};

static const uint32_t fractions[FRACTIONS] = {0U, 100U, 255U};
static const char *doing = "";
static char where[120];
static struct opwest_bundles bundles;
static struct opwest_bundles_config config;
static struct opwest_bundle_key key;
static struct opwest_session session;
static uint8_t session_memory[700];
static uint8_t trial_memory[1200];
static struct file old_file;
static struct file new_file;
static struct file other_file;
static uint32_t cuts;
static uint32_t operations;
static uint32_t stride;

static int start(void)
{
	int rc;

	memset(&bundles, 0, sizeof(bundles));
	memset(&session, 0, sizeof(session));
	session.memory = (struct opwest_bundle_memory){
		.memory = session_memory,
		.size = sizeof(session_memory),
	};
	rc = opwest_bundles_start(&bundles, &config);
	if (rc == 0 || rc == -ENOENT) {
		REQUIRE(opwest_session_add(&bundles, &session) == 0);
	}
	return rc;
}

static int install(uint8_t slot, const struct file *file)
{
	struct opwest_bundle_verdict verdict;
	const int rc = send_file(&bundles, slot, file, PART);

	return rc != 0 ? rc : opwest_bundles_install(&bundles, &verdict);
}

/* The mark of the current model; 0 without one. */
static int32_t mark(void)
{
	const int8_t x[4] = {7, 1, 2, 3};
	int32_t y[4] = {0};
	float z;
	const void *const inputs[] = {x};
	void *const outputs[] = {y, &z};
	const int rc = opwest_session_run(&session, 0x1122334455667788ULL, inputs, outputs);

	if (rc == -ENOENT) {
		return 0;
	}
	REQUIRE(rc == 0 && y[3] - 9 == y[0] - 21);
	return y[0] - 21;
}

/* The golden vectors of the current model agree. */
static bool agrees(void)
{
	struct opwest_bundle_verdict verdict;

	return opwest_bundle_try(&bundles, bundles.current, &verdict);
}

static void prepare_empty(void)
{
	REQUIRE(start() == -ENOENT);
}

static void prepare_old(void)
{
	prepare_empty();
	REQUIRE(install(0U, &old_file) == 0 || bundles.record.trying == 0U);
	if (bundles.record.trying == 0U) {
		REQUIRE(opwest_bundles_confirm(&bundles) == 0);
	}
	REQUIRE(mark() == 1000);
}

/* Slot 1 has a previous model, which the installation replaces. */
static void prepare_previous(void)
{
	prepare_old();
	REQUIRE(install(1U, &other_file) == 0);
	REQUIRE(install(0U, &old_file) == 0);
	REQUIRE(mark() == 1000);
}

static void prepare_other(void)
{
	prepare_old();
	REQUIRE(install(1U, &other_file) == 0 && mark() == 3000);
}

static void prepare_trial(void)
{
	prepare_old();
	REQUIRE(install(1U, &new_file) == 0 && bundles.record.trying == 1U && mark() == 2000);
}

static void prepare_crashed(void)
{
	prepare_other();
	for (int i = 0; i < 2; i++) {
		REQUIRE(start() == 0 && mark() == 3000);
	}
}

/* A changed byte of the confirmed model. */
static void prepare_damaged(void)
{
	prepare_other();
	simulated_memory(1U)[300] ^= 1U;
}

static void act_install_old(void)
{
	(void)install(0U, &old_file);
}

static void act_install(void)
{
	(void)install(OPWEST_BUNDLE_NO_SLOT, &new_file);
}

static void act_install_and_confirm(void)
{
	if (install(OPWEST_BUNDLE_NO_SLOT, &new_file) == 0) {
		(void)opwest_bundles_confirm(&bundles);
	}
}

static void act_roll_back(void)
{
	struct opwest_bundle_verdict verdict;

	(void)opwest_bundles_roll_back(&bundles, &verdict);
}

static void act_confirm(void)
{
	(void)opwest_bundles_confirm(&bundles);
}

static void act_start(void)
{
	(void)start();
}

static void act_healthy(void)
{
	if (start() == 0) {
		(void)opwest_bundles_healthy(&bundles);
	}
}

static const struct scenario scenarios[] = {
	{"first installation", prepare_empty, act_install_old, {1000, 0, 0}, false, 0U},
	{"installation", prepare_old, act_install, {1000, 2000, 0}, false, 0U},
	{"installation over the previous model", prepare_previous, act_install, {1000, 2000, 0},
	 false, 0U},
	{"installation and confirmation", prepare_old, act_install_and_confirm, {1000, 2000, 0},
	 true, 0U},
	{"roll-back", prepare_other, act_roll_back, {3000, 1000, 0}, false, 0U},
	{"end of a trial", prepare_trial, act_roll_back, {1000, 0, 0}, true, 0U},
	{"confirmation", prepare_trial, act_confirm, {1000, 2000, 0}, true, 0U},
	{"start of a trial", prepare_trial, act_start, {1000, 0, 0}, true, 0U},
	{"start of a counted model", prepare_other, act_healthy, {3000, 0, 0}, false, 3U},
	{"start after crashes", prepare_crashed, act_start, {3000, 1000, 0}, false, 2U},
	{"start of a damaged model", prepare_damaged, act_start, {1000, 0, 0}, false, 0U},
};

/* Returns true if the power was cut. */
static bool execute(const char *what, void (*action)(void))
{
	doing = what;
	if (setjmp(simulated.cut) != 0) {
		cuts++;
		return true;
	}
	action();
	return false;
}

static void set_up(const struct scenario *scenario)
{
	simulated_open(2U, 4U, 0xffU);
	config.waits_for_confirmation = scenario->waits;
	config.crash_limit = scenario->crash_limit;
	where[0] = '\0';
	doing = scenario->name;
	scenario->prepare();
}

static bool is_allowed(const struct scenario *scenario, int32_t found)
{
	for (int i = 0; i < 3; i++) {
		if (scenario->allowed[i] == found) {
			return found != 0;
		}
	}
	return false;
}

static void recover(void)
{
	config.crash_limit = 0U;
	config.waits_for_confirmation = false;
	(void)start();
}

static void recover_and_install(void)
{
	recover();
	if (bundles.started && bundles.slot != 1U) {
		(void)install(1U, &new_file);
	}
}

/* What must be true after a cut and a start, in every case. */
static void check(const struct scenario *scenario)
{
	const bool first = scenario->prepare == prepare_empty;
	const int rc = start();
	const int32_t found = mark();

	doing = "start after a cut";
	REQUIRE(rc == 0 || (first && rc == -ENOENT));
	REQUIRE(is_allowed(scenario, found) || (first && found == 0));
	REQUIRE(found == 0 || agrees());
	REQUIRE(bundles.record.trying == OPWEST_BUNDLE_NO_SLOT);
}

/* The next installation succeeds: first of the old model's slot or of the other one. */
static void check_installation(void)
{
	const int32_t before = mark();
	const struct file *const next =
		bundles.slot == 1U ? &old_file : before == 2000 ? &old_file : &new_file;

	doing = "installation after a cut";
	config.waits_for_confirmation = false;
	config.allows_downgrade = true;
	REQUIRE(install(next == &old_file ? 0U : 1U, next) == 0);
	REQUIRE(mark() == (next == &old_file ? 1000 : 2000));
	config.allows_downgrade = false;
	REQUIRE(start() == 0 && mark() == (next == &old_file ? 1000 : 2000));
}

static void disturb(uint32_t n, uint32_t variant)
{
	if (variant == 0U) {
		simulated_disturb(n, BEFORE, 0U, 0);
	} else if (variant == 1U) {
		simulated_disturb(n, AFTER, 0U, 0);
	} else {
		simulated_disturb(n, INSIDE, fractions[variant - 2U], 0);
	}
}

/* A second cut at every operation of the recovery. */
static void cut_twice(const struct scenario *scenario, uint32_t n, uint32_t variant)
{
	static uint8_t memory[2][SLOT_SIZE];
	static struct simulated saved;

	memcpy(memory[0], simulated_memory(0U), SLOT_SIZE);
	memcpy(memory[1], simulated_memory(1U), SLOT_SIZE);
	saved = simulated;
	for (uint32_t second = 1U;; second++) {
		for (uint32_t again = 0U; again < 2U + FRACTIONS; again++) {
			memcpy(simulated_memory(0U), memory[0], SLOT_SIZE);
			memcpy(simulated_memory(1U), memory[1], SLOT_SIZE);
			simulated = saved;
			(void)snprintf(where, sizeof(where), "operation %u/%u, then %u/%u", n, variant,
				       second, again);
			disturb(second, again);
			if (!execute("recovery", recover_and_install)) {
				simulated_disturb(0U, BEFORE, 0U, 0);
				return;
			}
			/* The installation of the recovery may have succeeded. */
			struct scenario both = *scenario;

			both.allowed[2] = 2000;
			check(&both);
			check_installation();
		}
	}
}

static uint32_t cut_everywhere(const struct scenario *scenario, bool twice)
{
	uint32_t count;

	set_up(scenario);
	count = simulated.operations;
	scenario->act();
	count = simulated.operations - count;
	for (uint32_t n = 1U; n <= count; n++) {
		if (n % stride != 0U && n + 4U <= count) {
			continue;
		}
		for (uint32_t variant = 0U; variant < 2U + FRACTIONS; variant++) {
			set_up(scenario);
			(void)snprintf(where, sizeof(where), "operation %u of %u, variant %u", n,
				       count, variant);
			disturb(n, variant);
			REQUIRE(execute(scenario->name, scenario->act));
			if (twice) {
				cut_twice(scenario, n, variant);
			} else {
				check(scenario);
				check_installation();
			}
		}
	}
	return count;
}

int main(int argc, char **argv)
{
	if (argc != 7) {
		return 2;
	}
	stride = (uint32_t)atoi(argv[6]);
	(void)bytes_of(argv[5], key.bytes);
	old_file = read_file(argv[1]);
	new_file = read_file(argv[2]);
	other_file = read_file(argv[3]);
	config = (struct opwest_bundles_config){
		.storage = &simulated_storage,
		.keys = &key,
		.key_count = 1U,
		.host = &opwest_bundle_host,
		.trial = {.memory = trial_memory, .size = sizeof(trial_memory)},
	};
	for (size_t i = 0U; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
		const uint32_t before = cuts;
		const uint32_t count =
			cut_everywhere(&scenarios[i], strcmp(argv[4], "double") == 0);

		operations += count;
		printf("%s: %u operations, %u cuts\n", scenarios[i].name, count, cuts - before);
	}
	printf("%u operations, %u cuts\n", operations, cuts);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts the power before, in and after flash operations of a transaction, also in the first
 * operations of the start after a cut. Every start must find the old or the new model, and a
 * repeated transaction must then succeed.
 */
#include <string.h>

#include <zephyr/kernel.h>

#include "bundles.h"

#define CHECKED_CASES   3U
#define LAST_OPERATIONS 24U

enum phase {
	/* Take the snapshot. */
	PHASE_BEGIN,
	/* The operations of the transaction are counted. */
	PHASE_COUNT,
	/* The power is cut in the transaction. */
	PHASE_CUT,
	/* The power is cut in the start. */
	PHASE_SECOND,
	/* The model is checked. */
	PHASE_CHECK,
};

static const struct cases *old_cases;
static const struct cases *new_cases;
static struct opwest_bundle_verdict verdict;

/* A sample has every stride-th operation, and of the last ones, the records, every tail-th. */
static bool is_in_sample(uint32_t operation, uint32_t total, uint32_t stride, uint32_t tail)
{
	return operation % stride == 1U % stride ||
	       (total - operation < LAST_OPERATIONS && (total - operation) % tail == 0U);
}

static int transact(const char *kind, uint32_t part)
{
	if (strcmp(kind, "rollback") == 0) {
		return opwest_bundles_roll_back(&bundles, &verdict);
	}
	const int rc = install(part, 256U, &verdict);

	if (rc == 0 && strcmp(kind, "confirm") == 0) {
		return opwest_bundles_confirm(&bundles);
	}
	return rc;
}

/* 'o', 'n', or '?' for neither model. */
static char model(void)
{
	if (run_cases(old_cases, 0U, CHECKED_CASES) == (int)CHECKED_CASES) {
		return 'o';
	}
	return run_cases(new_cases, 0U, CHECKED_CASES) == (int)CHECKED_CASES ? 'n' : '?';
}

static FUNC_NORETURN void go(uint32_t phase)
{
	state_of_flash()->test[WORD_PHASE] = phase;
	if (phase == PHASE_CUT) {
		memcpy((void *)FLASH_ADDRESS, (const void *)SNAPSHOT_ADDRESS, FLASH_SIZE);
	}
	reset();
	CODE_UNREACHABLE;
}

static void arm(uint32_t operation, uint32_t cut)
{
	struct opwest_flash_emul_state *const state = state_of_flash();

	state->operations = 0U;
	state->cut = cut;
	state->cut_at = operation;
}

/* The next cut of the sample; false after the last one. */
static bool advance(uint32_t stride, uint32_t tail)
{
	uint32_t *const words = state_of_flash()->test;

	words[WORD_SECOND] = 0U;
	if (words[WORD_CUT] < OPWEST_FLASH_EMUL_AFTER) {
		words[WORD_CUT]++;
		return true;
	}
	words[WORD_CUT] = OPWEST_FLASH_EMUL_BEFORE;
	do {
		words[WORD_OPERATION]++;
	} while (words[WORD_OPERATION] <= words[WORD_TOTAL] &&
		 !is_in_sample(words[WORD_OPERATION], words[WORD_TOTAL], stride, tail));
	return words[WORD_OPERATION] <= words[WORD_TOTAL];
}

static void check(const char *kind, uint32_t part, bool fails)
{
	struct opwest_flash_emul_state *const state = state_of_flash();
	uint32_t *const words = state->test;
	const uint32_t offset = state->cut_offset;

	arm(0U, 0U);

	const int rc = start();

	if (words[WORD_SECOND] == 0U) {
		words[WORD_START] = state->operations;
	}

	const char found = model();
	int repeated = 0;
	char after = found;

	if (found == 'o') {
		repeated = transact(kind, part);
		after = model();
	}
	const bool good = rc == 0 && (fails ? found == 'o' && after == 'o'
					    : (found == 'o' || found == 'n') && after == 'n');

	words[WORD_CUTS]++;
	words[WORD_BAD] += good ? 0U : 1U;
	printk("cut %u.%u.%u at %x: start %d model %c, again %d model %c%s\n",
	       words[WORD_OPERATION], words[WORD_CUT], words[WORD_SECOND], offset, rc, found,
	       repeated, after, good ? "" : " BAD");
}

void run_campaign(const char *kind, uint32_t part, uint32_t old_part, uint32_t new_part,
		  uint32_t stride, uint32_t tail)
{
	struct opwest_flash_emul_state *const state = state_of_flash();
	uint32_t *const words = state->test;
	const bool fails = strcmp(kind, "refused") == 0;

	config.allows_downgrade = true;
	config.waits_for_confirmation = strcmp(kind, "confirm") == 0;
	old_cases = cases_of(old_part);
	new_cases = cases_of(new_part);
	/* Run this command again after each reset. */
	words[WORD_LINE]--;
	switch (words[WORD_PHASE]) {
	case PHASE_BEGIN:
		memcpy((void *)SNAPSHOT_ADDRESS, (const void *)FLASH_ADDRESS, FLASH_SIZE);
		words[WORD_OPERATION] = 1U;
		words[WORD_CUT] = OPWEST_FLASH_EMUL_BEFORE;
		words[WORD_SECOND] = 0U;
		words[WORD_CUTS] = 0U;
		words[WORD_BAD] = 0U;
		go(PHASE_COUNT);
	case PHASE_COUNT:
		(void)start();
		state->operations = 0U;
		printk("campaign %s: %d", kind, transact(kind, part));
		words[WORD_TOTAL] = state->operations;
		printk(", %u operations, model %c\n", words[WORD_TOTAL], model());
		go(PHASE_CUT);
	case PHASE_CUT:
		(void)start();
		words[WORD_PHASE] = PHASE_SECOND;
		arm(words[WORD_OPERATION], words[WORD_CUT]);
		(void)transact(kind, part);
		printk("error: operation %u is not reached\n", words[WORD_OPERATION]);
		words[WORD_BAD]++;
		go(PHASE_CHECK);
	case PHASE_SECOND:
		/* The first pass has no second cut. */
		if (words[WORD_SECOND] > 0U) {
			words[WORD_PHASE] = PHASE_CHECK;
			arm(words[WORD_SECOND], words[WORD_CUT]);
			(void)start();
			printk("error: operation %u of the start is not reached\n",
			       words[WORD_SECOND]);
			words[WORD_BAD]++;
			reset();
		}
		__fallthrough;
	case PHASE_CHECK:
		check(kind, part, fails);
		words[WORD_SECOND]++;
		if (words[WORD_SECOND] <= words[WORD_START] || advance(stride, tail)) {
			go(PHASE_CUT);
		}
		break;
	default:
		break;
	}
	printk("campaign %s: %u cuts, %u bad\n", kind, words[WORD_CUTS], words[WORD_BAD]);
	words[WORD_PHASE] = PHASE_BEGIN;
	words[WORD_LINE]++;
	go(PHASE_BEGIN);
}

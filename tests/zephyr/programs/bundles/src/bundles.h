/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program for tests of bundles. The test puts a package into memory: a script, and parts that its
 * commands name by their index. The script continues after a reset.
 */
#ifndef BUNDLES_H_
#define BUNDLES_H_

#include <stdbool.h>
#include <stdint.h>

#include <opwest/bundle_storage_zephyr.h>
#include <opwest/bundles.h>
#include <opwest/flash_emul.h>

#define FLASH_NODE DT_GPARENT(DT_NODELABEL(bundle_slot0))
/* In the memory behind that of the flash. */
#define FLASH_ADDRESS    DT_REG_ADDR(FLASH_NODE)
#define FLASH_SIZE       DT_REG_SIZE(FLASH_NODE)
#define SNAPSHOT_ADDRESS (FLASH_ADDRESS + 0x600000U)
#define PACKAGE_ADDRESS  (FLASH_ADDRESS + 0x800000U)
#define PACKAGE_MAGIC    0x5057504fU

#define SESSIONS     2U
/* Bytes of each session, and of the trial. */
#define MEMORY_SIZE 32768U

struct part {
	uint32_t offset;
	uint32_t size;
};

struct package {
	uint32_t magic;
	uint32_t count;
	struct part parts[];
};

/* Runs with their expected outputs, of models with one input and one output. */
struct cases {
	uint32_t count;
	uint32_t input_size;
	uint32_t output_size;
	uint32_t reserved;
	uint8_t data[];
};

/* The words of struct opwest_flash_emul_state for tests. */
enum word {
	WORD_LINE,
	WORD_PHASE,
	WORD_OPERATION,
	WORD_CUT,
	WORD_SECOND,
	WORD_TOTAL,
	WORD_CUTS,
	WORD_BAD,
	/* The number of operations of the start after the cut. */
	WORD_START,
};

extern struct opwest_bundles bundles;
extern struct opwest_bundles_config config;
extern struct opwest_session sessions[SESSIONS];

struct opwest_flash_emul_state *state_of_flash(void);
const uint8_t *part_of(uint32_t index, uint32_t *size);
const struct cases *cases_of(uint32_t index);
const uint8_t *input_of(const struct cases *cases, uint32_t index);
const uint8_t *output_of(const struct cases *cases, uint32_t index);

/* Start the manager with all sessions. */
int start(void);
/* Send a bundle in chunks, and install it. */
int install(uint32_t part, uint32_t chunk, struct opwest_bundle_verdict *verdict);
/* Send a part of a bundle, in chunks. */
int upload(uint32_t part, uint32_t chunk, uint32_t until);
/* Run the model; the number of equal outputs, or a negative errno. */
int run_cases(const struct cases *cases, uint32_t first, uint32_t count);
/* Run one command of the script. */
void command(char *line);
/* Reset the processor. */
void reset(void);

/* Two threads run the model while a bundle is installed. */
void run_threads(uint32_t part, uint32_t old_cases, uint32_t new_cases);
/* Cut the power at flash operations. Returns when all are done; runs again after each reset. */
void run_campaign(const char *kind, uint32_t part, uint32_t old_cases, uint32_t new_cases,
		  uint32_t stride, uint32_t tail);

#endif /* BUNDLES_H_ */

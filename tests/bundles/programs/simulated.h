/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A storage in memory whose power can be cut: slots at fixed addresses, where the code in them is
 * executed, and records. Each erase, write and store is one operation.
 */
#ifndef SIMULATED_H_
#define SIMULATED_H_

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

#include <opwest/bundles.h>

#define MAX_SLOTS   3U
#define SLOT_SIZE    0x4000U
#define SLOT_BASE    0x10000000U
#define SLOT_STRIDE  0x100000U
#define MAX_RECORDS 16U

enum when {
	BEFORE = 0,
	/* A part of it is done: `fraction` of 256. A record is the old one. */
	INSIDE = 1,
	AFTER = 2,
};

struct simulated {
	/* The operation of this number, from 1, is disturbed; 0: none. */
	uint32_t disturbed;
	enum when when;
	uint32_t fraction;
	/* The operation returns this code; 0: the power is cut. */
	int code;
	/* The code of the operation after the disturbed one, which is not done; 0: it is. */
	int next_code;
	/* The number of operations, and their kinds. */
	uint32_t operations;
	uint32_t erases;
	uint32_t writes;
	uint32_t stores;
	/* Returned by all loads, synchronisations and links. */
	int load_code;
	int synchronise_code;
	int link_code;
	/* The offset of the descriptor of images of OPWEST_BUNDLE_LLEXT in the file. */
	uint32_t descriptor_offset;
	int32_t links[MAX_SLOTS];
	/* Where the power is cut. */
	jmp_buf cut;
	struct opwest_bundle_slot slots[MAX_SLOTS];
	struct {
		uint8_t data[64];
		uint32_t size;
	} records[MAX_RECORDS];
};

extern struct simulated simulated;
extern struct opwest_bundle_storage simulated_storage;
extern struct opwest_bundle_storage_api simulated_api;

/* Map the slots, erased, without records. */
void simulated_open(uint8_t count, uint32_t write_size, uint8_t erased);

/* Disturb an operation: the n-th one from now. */
void simulated_disturb(uint32_t n, enum when when, uint32_t fraction, int code);

/* The memory of a slot, for changes that no operation makes. */
uint8_t *simulated_memory(uint8_t slot);

#endif /* SIMULATED_H_ */

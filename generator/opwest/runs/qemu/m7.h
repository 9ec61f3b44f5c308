/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model of the cycles of a Cortex-M7, for plugins. Arm publishes no timing of this processor: the
 * numbers are those of the scheduling model in LLVM (llvm/lib/Target/ARM/ARMScheduleM7.td), with
 * these assumptions:
 *
 *   - Instructions are issued in order, at most two in a cycle. Both wait for the operands of the
 * first.
 *   - A cycle has two ALUs, one shifter, one multiplier, one unit for SIMD, saturation and
 * extension (in the first place of a pair only), one FPU operation, one store, and two loads of a
 * word or less whose addresses differ in bit 2. LDRD, LDM, STM, VLDM are issued alone: two words in
 * a cycle. SDIV and UDIV take 7 cycles.
 *   - From the issue to a use: ALUs and words of memory 1, bytes and halfwords of memory,
 * multiplications and saturation 2, FPU 3, float multiplications with addition 6. Addresses and
 * shifted operands are read a cycle earlier than others, data of stores and addends of
 * multiplications a cycle later, float addends 3 later.
 *   - Branches are predicted by a counter of 2 bits for each, which starts with taken for backward
 * ones. The target of a taken one is issued in the next cycle; a wrong prediction, and each branch
 * to a register, takes 6 more.
 *   - All accesses hit: code and data are in tightly coupled memories or in the caches.
 */
#ifndef M7_H_
#define M7_H_

#include "m7_decode.h"

#define M7_WRONG 6

/** The state of the pipeline: the last cycle with an issue, what is issued in it, when registers
 * are ready. */
struct m7_pipeline {
	uint64_t cycle;
	uint64_t ready[REGISTERS];
	uint64_t address;
	uint64_t free;
	uint8_t count;
	uint8_t units;
	bool is_closed;
};

/** Begin with an idle pipeline. */
static inline void m7_clear(struct m7_pipeline *pipeline)
{
	*pipeline = (struct m7_pipeline){.is_closed = true};
}

static inline void m7_wait(const struct m7_pipeline *pipeline, uint64_t registers, int64_t later,
			   uint64_t *at)
{
	for (; registers != 0; registers &= registers - 1) {
		const int64_t ready = (int64_t)pipeline->ready[__builtin_ctzll(registers)] - later;

		if (ready > (int64_t)*at) {
			*at = (uint64_t)ready;
		}
	}
}

/** Whether an instruction can be issued in the cycle of the last one. `address`: that of its
 * access. */
static inline bool m7_pairs(const struct m7_pipeline *pipeline, const struct m7_instruction *one,
			    uint64_t address)
{
	uint8_t taken = pipeline->units & one->units;

	if (pipeline->is_closed || pipeline->count != 1 || one->is_alone ||
	    (one->units & UNIT_SIMD) != 0) {
		return false;
	}
	if ((taken & UNIT_LOAD) != 0 && ((pipeline->address ^ address) & 4) != 0) {
		taken &= (uint8_t)~UNIT_LOAD;
	}
	return taken == 0;
}

/** Issue an instruction. */
static inline void m7_issue(struct m7_pipeline *pipeline, const struct m7_instruction *one,
			    uint64_t address)
{
	uint64_t at = pipeline->cycle;

	m7_wait(pipeline, one->early, -1, &at);
	m7_wait(pipeline, one->reads, 0, &at);
	m7_wait(pipeline, one->late, 1, &at);
	m7_wait(pipeline, one->addends, one->addend_cycles, &at);
	if (at == pipeline->cycle && !m7_pairs(pipeline, one, address)) {
		at++;
	}
	if (at < pipeline->free) {
		at = pipeline->free;
	}
	if (at != pipeline->cycle) {
		pipeline->cycle = at;
		pipeline->count = 0;
		pipeline->units = 0;
		pipeline->is_closed = false;
	}
	pipeline->count++;
	pipeline->units |= one->units;
	pipeline->address = address;
	pipeline->free = at + one->cycles - (one->cycles == 1 ? 1 : 0);
	pipeline->is_closed |= one->is_alone;
	for (uint64_t rest = one->writes; rest != 0; rest &= rest - 1) {
		pipeline->ready[__builtin_ctzll(rest)] =
			at + one->latency + (one->is_alone ? one->cycles - 1u : 0);
	}
	for (uint64_t rest = one->moved; rest != 0; rest &= rest - 1) {
		pipeline->ready[__builtin_ctzll(rest)] = at;
	}
}

/** The prediction of a branch. */
struct m7_branch {
	uint8_t counter;
	bool is_known;
};

/** Continue after a branch. */
static inline void m7_branched(struct m7_pipeline *pipeline, const struct m7_instruction *one,
			       struct m7_branch *branch, bool is_taken)
{
	bool is_wrong = one->is_indirect && is_taken;

	if (!one->is_indirect) {
		if (!branch->is_known) {
			branch->counter = one->is_backward ? 2 : 1;
			branch->is_known = true;
		}
		is_wrong = (branch->counter >= 2) != is_taken;
		if (is_taken && branch->counter < 3) {
			branch->counter++;
		} else if (!is_taken && branch->counter > 0) {
			branch->counter--;
		}
	}
	pipeline->is_closed |= is_taken || is_wrong;
	if (is_wrong && pipeline->free < pipeline->cycle + 1 + M7_WRONG) {
		pipeline->free = pipeline->cycle + 1 + M7_WRONG;
	}
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cycles of instructions, for plugins.
 *
 * The model of cycles is for Arm's Thumb code on processors without caches and wait states (Cortex-M3: r2p1's
 * Technical Reference Manual, 3.3; Cortex-M4: r0p1's, 3.3):
 *
 *   every instruction                      1
 *   a load of n words                     +n, one less for a load of one word after a load of one word (pipelined)
 *   a store of n words, n > 1             +n; a store of one word is buffered
 *   a taken branch                        +2 (refill of the pipeline; the manual has 1 to 3)
 *   SDIV, UDIV                            +6 (the manuals have 2 to 12 cycles in total, which depend on the operands)
 *   Cortex-M3 (m3=1): MLA, MLS            +1; a multiplication with a 64-bit result +3, with addition +4
 *   VLDR, VLDM, VPOP of n words           +n; they are not pipelined
 *   VSTR, VSTM, VPUSH of n words          +n
 *   VMLA, VMLS, VFMA and the like         +2
 *   VDIV, VSQRT                           +13
 *   VMOV with two core registers          +1
 *   arithmetic of the FPU                 +1 if the next instruction reads its result, except as the addend of VMLA
 *
 * Only float32 registers are read for the last row. Vector instructions of MVE take one cycle.
 *
 * Of other instructions, each takes one cycle: `thumb` is 0.
 */
#ifndef THUMB_H_
#define THUMB_H_

#include <stdbool.h>
#include <stdint.h>

/** Options of the model. */
static uint64_t m3, thumb = 1;

/** What the model reads of one instruction. */
struct cost {
	/** Words that it loads and stores. */
	uint8_t loads;
	uint8_t stores;
	/** Whether it is a load of one word that a following load can overlap. */
	bool is_single;
	/** Further cycles of a multiplication or division. */
	uint8_t more;
	/** The float32 registers that arithmetic writes, and those that the instruction reads at its start. */
	uint32_t result;
	uint32_t operands;
};

/** Read a 16-bit Thumb instruction: Arm v7-M Architecture Reference Manual, A5.2. */
static inline void read_narrow(struct cost *one, uint32_t code)
{
	const uint32_t top = code >> 12;
	const bool is_load = (code & 0x800) != 0;

	if ((code & 0xf800) == 0x4800) {
		one->loads = 1; /* LDR (literal) */
		one->is_single = true;
	} else if (top == 5) {
		one->is_single = (code >> 9 & 7) >= 3; /* register offset */
		one->loads = one->is_single;
		one->stores = !one->is_single;
	} else if (top >= 6 && top <= 9) {
		one->is_single = is_load; /* immediate offset */
		one->loads = is_load;
		one->stores = !is_load;
	} else if ((code & 0xfe00) == 0xbc00) {
		one->loads = (uint8_t)__builtin_popcount(code & 0x1ff); /* POP */
	} else if ((code & 0xfe00) == 0xb400) {
		one->stores = (uint8_t)__builtin_popcount(code & 0x1ff); /* PUSH */
	} else if (top == 12) {
		*(is_load ? &one->loads : &one->stores) = (uint8_t)__builtin_popcount(code & 0xff); /* LDM, STM */
	}
}

/** Read arithmetic of the FPU: Arm v7-M Architecture Reference Manual, A6.4. */
static inline void read_float_arithmetic(struct cost *one, uint32_t first, uint32_t second)
{
	const uint32_t d = (second >> 12 & 15) << 1 | (first >> 6 & 1);
	const uint32_t n = (first & 15) << 1 | (second >> 7 & 1);
	const uint32_t m = (second & 15) << 1 | (second >> 5 & 1);
	const uint32_t operation = first >> 4 & 11;

	one->result = 1u << d;
	one->operands = 1u << m;
	if (operation != 11) {
		one->operands |= 1u << n;
		/* VMUL and VADD have no further cycles. */
		one->more = operation == 8 ? 13 : operation == 2 || operation == 3 ? 0 : 2;
	} else if ((second & 0x40) == 0) {
		one->result = one->operands = 0; /* VMOV (immediate) */
	} else if ((first & 15) == 4 || (first & 15) == 5) {
		one->operands = (first & 1) != 0 ? 1u << d : 1u << d | 1u << m; /* VCMP */
		one->result = 0;
	} else if ((first & 15) == 0 && (second & 0x80) == 0) {
		one->result = 0; /* VMOV (register) */
	} else if ((first & 15) == 1 && (second & 0x80) != 0) {
		one->more = 13; /* VSQRT */
	}
}

/** Read an instruction of the FPU: Arm v7-M Architecture Reference Manual, A6. */
static inline void read_float(struct cost *one, uint32_t first, uint32_t second)
{
	const bool is_load = (first & 0x10) != 0, is_single = (second & 0x100) == 0;
	const uint32_t d = (second >> 12 & 15) << 1 | (first >> 6 & 1);
	uint32_t words = second & 0xff;

	if ((first & 0xff00) == 0xee00 && (second & 0x10) == 0) {
		if (is_single) {
			read_float_arithmetic(one, first, second);
		}
	} else if ((first & 0xff00) == 0xee00) {
		one->operands = is_load ? 1u << ((first & 15) << 1 | (second >> 7 & 1)) : 0; /* VMOV, VMRS */
	} else if ((first & 0xffe0) == 0xec40) {
		one->more = 1; /* VMOV with two core registers */
	} else {
		if ((first & 0x120) == 0x100) {
			words = is_single ? 1 : 2; /* VLDR, VSTR */
		}
		one->loads = is_load ? (uint8_t)words : 0;
		one->stores = is_load ? 0 : (uint8_t)words;
		if (!is_load && is_single && words > 0 && words <= 32) {
			one->more = words == 1;
			one->operands = 0xffffffffu >> (32 - words) << d;
		}
	}
}

/** Read a 32-bit Thumb instruction: Arm v7-M Architecture Reference Manual, A5.3. */
static inline void read_wide(struct cost *one, uint32_t first, uint32_t second)
{
	const bool is_load = (first & 0x10) != 0;

	if ((first & 0xfe40) == 0xe800) {
		*(is_load ? &one->loads : &one->stores) = (uint8_t)__builtin_popcount(second); /* LDM, STM */
	} else if ((first & 0xfe40) == 0xe840 && (first & 0x0120) != 0) {
		*(is_load ? &one->loads : &one->stores) = 2; /* LDRD, STRD */
	} else if ((first & 0xfe00) == 0xec00 || (first & 0xff00) == 0xee00) {
		/* Coprocessors 10 and 11. Those of vector instructions are others. */
		if ((second & 0xe00) == 0xa00) {
			read_float(one, first, second);
		}
	} else if ((first & 0xfe00) == 0xf800) {
		one->is_single = is_load; /* LDR, STR and their narrow forms */
		one->loads = is_load;
		one->stores = !is_load;
	} else if ((first & 0xffd0) == 0xfb90) {
		one->more = 6; /* SDIV, UDIV */
	} else if (m3 && (first & 0xfff0) == 0xfb00 && second >> 12 != 15) {
		one->more = 1; /* MLA, MLS */
	} else if (m3 && (first & 0xff90) == 0xfb80) {
		one->more = (first & 0x40) != 0 ? 4 : 3; /* SMLAL, UMLAL; SMULL, UMULL */
	}
}

/** Read an instruction of `size` bytes. */
static inline struct cost cost_of(const uint8_t *bytes, size_t size)
{
	struct cost cost = {0};

	if (!thumb) {
		/* Loads and stores are not counted. */
	} else if (size == 2) {
		read_narrow(&cost, bytes[0] | (uint32_t)bytes[1] << 8);
	} else {
		read_wide(&cost, bytes[0] | (uint32_t)bytes[1] << 8, bytes[2] | (uint32_t)bytes[3] << 8);
	}
	return cost;
}

/** Return the cycles of an instruction after `before`, which is NULL for the first one. */
static inline uint64_t cycles_of(const struct cost *one, const struct cost *before)
{
	const bool is_pipelined = one->is_single && before != NULL && before->is_single;
	const bool is_waiting = before != NULL && (before->result & one->operands) != 0;

	return 1 + one->loads + one->more + (one->stores > 1 ? one->stores : 0) + is_waiting - is_pipelined;
}

#endif

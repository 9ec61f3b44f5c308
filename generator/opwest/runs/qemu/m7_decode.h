/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registers and units of a Thumb instruction, for the model of the Cortex-M7 in m7.h: Arm v7-M
 * Architecture Reference Manual, A5.2 to A6.5. Registers are the bits of a mask: r0 to r15, the
 * flags, s0 to s31 from bit 32 on.
 */
#ifndef M7_DECODE_H_
#define M7_DECODE_H_

#include <stdbool.h>
#include <stdint.h>

#define FLAGS          16
#define REGISTERS      64
#define CORE(number)   (UINT64_C(1) << (number))
#define SINGLE(number) (UINT64_C(1) << (32 + (number)))

/** Units, of which an instruction uses some in the cycle of its issue. */
enum {
	UNIT_SHIFT = 1, /* the shifter in front of the ALUs */
	UNIT_MAC = 2,   /* multiplications */
	UNIT_SIMD = 4, /* extensions, parallel and saturating arithmetic: only the first instruction
			  of a pair */
	UNIT_LOAD = 8, /* one access; two of them in a cycle access different banks */
	UNIT_STORE = 16,
	UNIT_BRANCH = 32,
	UNIT_FPU = 64,
};

/** What the model reads of one instruction. */
struct m7_instruction {
	/** Operands of the ALUs and multipliers. */
	uint64_t reads;
	/** Addresses and shifted operands, which are read a cycle earlier. */
	uint64_t early;
	/** Addends of multiplications and data of stores, which are read a cycle later. */
	uint64_t late;
	/** Addends of float multiplications, which are read some cycles later. */
	uint64_t addends;
	uint8_t addend_cycles;
	uint64_t writes;
	/** Address registers that the instruction moves: the next address can use them in the next
	 * cycle. */
	uint64_t moved;
	uint8_t units;
	/** The cycles from the issue to a result in `writes`. */
	uint8_t latency;
	/** The cycles of the issue. */
	uint8_t cycles;
	/** Whether it is the only one in its cycles. */
	bool is_alone;
	/** A branch to a register or a loaded address. */
	bool is_indirect;
	/** A branch to a lower address. */
	bool is_backward;
};

static inline uint64_t core(uint32_t number)
{
	return number == 15 ? 0 : CORE(number);
}

/** The issue cycles of some words: the memories are 64 bits wide. */
static inline uint8_t doubles(int words)
{
	return (uint8_t)((words + 1) / 2);
}

static inline void transfer(struct m7_instruction *one, uint64_t registers, int words, bool is_load)
{
	one->is_alone = words > 1;
	one->cycles = doubles(words);
	one->units |= is_load ? UNIT_LOAD : UNIT_STORE;
	*(is_load ? &one->writes : &one->late) |= registers;
	if (is_load && (registers & CORE(15)) != 0) {
		one->units |= UNIT_BRANCH;
		one->is_indirect = true;
	}
}

static inline void load_or_store(struct m7_instruction *one, uint64_t data, bool is_load,
				 bool is_word)
{
	transfer(one, data, 1, is_load);
	one->latency = is_load && !is_word ? 2 : 1;
}

/** 16-bit data processing with two registers: A5.2.2. */
static inline void m7_narrow_data(struct m7_instruction *one, uint32_t code)
{
	const uint32_t op = code >> 6 & 15;
	const uint64_t first = core(code & 7), second = core(code >> 3 & 7);

	one->reads = op == 15 || op == 9 ? second : first | second; /* MVN, RSB */
	one->writes = op == 8 || op == 10 || op == 11 ? CORE(FLAGS) : first | CORE(FLAGS);
	if (op == 13) {
		one->units = UNIT_MAC;
		one->latency = 2;
	} else if ((op >= 2 && op <= 4) || op == 7) {
		one->units = UNIT_SHIFT;
	} else if (op == 5 || op == 6) {
		one->reads |= CORE(FLAGS);
	}
}

/** 16-bit data processing with high registers, and branches to a register: A5.2.3. */
static inline void m7_narrow_special(struct m7_instruction *one, uint32_t code)
{
	const uint32_t op = code >> 8 & 3, to = (code & 7) | (code >> 4 & 8);
	const uint64_t from = core(code >> 3 & 15);

	if (op == 3) {
		one->units = UNIT_BRANCH;
		one->is_indirect = true;
		one->reads = from;
		one->writes = (code & 0x80) != 0 ? CORE(14) : 0;
		return;
	}
	one->reads = op == 2 ? from : from | core(to);
	one->writes = op == 1 ? CORE(FLAGS) : core(to);
}

/** The miscellaneous 16-bit instructions: A5.2.5. */
static inline void m7_narrow_other(struct m7_instruction *one, uint32_t code)
{
	if ((code & 0xf500) == 0xb100) { /* CBZ, CBNZ */
		one->units = UNIT_BRANCH;
		one->reads = core(code & 7);
	} else if ((code & 0xff00) == 0xb200 ||
		   (code & 0xff00) == 0xba00) { /* SXTB and the like, REV */
		one->units = UNIT_SIMD;
		one->reads = core(code >> 3 & 7);
		one->writes = core(code & 7);
	} else if ((code & 0xfe00) == 0xb400 || (code & 0xfe00) == 0xbc00) { /* PUSH, POP */
		const bool is_load = (code & 0x800) != 0;
		const uint64_t last = (code & 0x100) == 0 ? 0 : is_load ? CORE(15) : CORE(14);
		const uint64_t listed = (code & 0xff) | last;

		one->early = one->moved = CORE(13);
		transfer(one, listed, __builtin_popcountll(listed), is_load);
	} else if ((code & 0xff00) == 0xb000) {
		one->reads = one->writes = CORE(13);
	}
	/* IT and NOP take a place of a cycle. */
}

static inline void m7_narrow(struct m7_instruction *one, uint32_t code)
{
	const uint32_t top = code >> 12;
	const bool is_load = (code & 0x800) != 0;

	if (code < 0x1800) { /* shifts by a constant; MOV without one */
		one->reads = core(code >> 3 & 7);
		one->writes = core(code & 7) | CORE(FLAGS);
		one->units = (code >> 6 & 31) != 0 ? UNIT_SHIFT : 0;
	} else if (code < 0x2000) {
		one->reads = core(code >> 3 & 7) | ((code & 0x400) == 0 ? core(code >> 6 & 7) : 0);
		one->writes = core(code & 7) | CORE(FLAGS);
	} else if (code < 0x4000) { /* MOV, CMP, ADD, SUB with a constant of 8 bits */
		one->reads = code >> 11 == 4 ? 0 : core(code >> 8 & 7);
		one->writes = CORE(FLAGS) | (code >> 11 == 5 ? 0 : core(code >> 8 & 7));
	} else if (code < 0x4400) {
		m7_narrow_data(one, code);
	} else if (code < 0x4800) {
		m7_narrow_special(one, code);
	} else if (code < 0x5000) {
		load_or_store(one, core(code >> 8 & 7), true, true);
	} else if (top == 5) {
		const uint32_t op = code >> 9 & 7;

		one->early = core(code >> 3 & 7) | core(code >> 6 & 7);
		load_or_store(one, core(code & 7), op >= 3, op == 4);
	} else if (top < 9) {
		one->early = core(code >> 3 & 7);
		load_or_store(one, core(code & 7), is_load, top == 6);
	} else if (top == 9) {
		one->early = CORE(13);
		load_or_store(one, core(code >> 8 & 7), is_load, true);
	} else if (top == 10) {
		one->reads = is_load ? CORE(13) : 0;
		one->writes = core(code >> 8 & 7);
	} else if (top == 11) {
		m7_narrow_other(one, code);
	} else if (top == 12) {
		one->early = one->moved = core(code >> 8 & 7);
		transfer(one, code & 0xff, __builtin_popcount(code & 0xff), is_load);
	} else {
		one->units = UNIT_BRANCH;
		one->reads = top == 13 ? CORE(FLAGS) : 0;
		one->is_backward = (code & (top == 13 ? 0x80 : 0x400)) != 0;
	}
}

/** LDM, STM, LDRD, STRD, TBB and exclusive accesses: A5.3.5, A5.3.6. */
static inline void m7_wide_multiple(struct m7_instruction *one, uint32_t first, uint32_t second)
{
	const bool is_load = (first & 0x10) != 0;
	const uint64_t base = core(first & 15);

	one->early = base;
	if ((first & 0x40) == 0) {
		one->moved = (first & 0x20) != 0 ? base : 0;
		transfer(one, second, __builtin_popcount(second), is_load);
	} else if ((first & 0x120) != 0) {
		one->moved = (first & 0x20) != 0 ? base : 0;
		transfer(one, core(second >> 12) | core(second >> 8 & 15), 2, is_load);
	} else {
		transfer(one, core(second >> 12), 1, is_load);
		one->is_alone = true;
		if ((first & 0xfff0) == 0xe8d0 && (second & 0xffe0) == 0xf000) { /* TBB, TBH */
			one->early |= core(second & 15);
			one->writes = 0;
			one->units |= UNIT_BRANCH;
			one->cycles = 2;
			one->is_indirect = true;
		}
	}
}

/** Data processing with a shifted register or a modified constant: A5.3.1, A5.3.11. */
static inline void m7_wide_data(struct m7_instruction *one, uint32_t first, uint32_t second,
				bool is_register)
{
	const uint32_t op = first >> 5 & 15, rn = first & 15, rd = second >> 8 & 15;
	const bool has_flags = (first & 0x10) != 0;
	const bool is_shifted = is_register && (second & 0x70f0) != 0;
	const bool is_test = rd == 15 && has_flags && (op == 0 || op == 4 || op == 8 || op == 13);

	one->reads = core(rn);
	if (is_register) {
		*(is_shifted && !(op == 2 && rn == 15) ? &one->early : &one->reads) |=
			core(second & 15);
	}
	one->writes = (is_test ? 0 : core(rd)) | (has_flags ? CORE(FLAGS) : 0);
	one->units = is_shifted ? UNIT_SHIFT : 0;
	one->latency = is_test && is_shifted ? 2 : 1;
	if (op == 6 && is_register) { /* PKHBT, PKHTB */
		one->units = UNIT_SIMD | UNIT_SHIFT;
	} else if (op == 10 || op == 11) { /* ADC, SBC */
		one->reads |= CORE(FLAGS);
	}
}

/** Data processing with a plain constant: A5.3.3. */
static inline void m7_wide_plain(struct m7_instruction *one, uint32_t first, uint32_t second)
{
	const uint32_t op = first >> 4 & 31;

	one->writes = core(second >> 8 & 15);
	one->reads = core(first & 15);
	if (op == 4) { /* MOVW */
		one->reads = 0;
	} else if (op == 12) { /* MOVT */
		one->reads = one->writes;
	} else if (op == 22) { /* BFI, BFC */
		one->units = UNIT_SHIFT | UNIT_SIMD;
		one->reads |= one->writes;
	} else if (op >= 16) { /* SSAT, USAT; SBFX, UBFX */
		one->units = UNIT_SHIFT | UNIT_SIMD;
		one->early = one->reads;
		one->latency = op == 20 || op == 28 ? 1 : 2;
	}
}

/** Single loads and stores: A5.3.7 to A5.3.10. */
static inline void m7_wide_single(struct m7_instruction *one, uint32_t first, uint32_t second)
{
	const bool has_offset = (first & 0x80) != 0, is_word = (first & 0x60) == 0x40;
	const uint64_t base = core(first & 15);

	one->early = base;
	if (!has_offset && (first & 15) != 15) {
		if ((second & 0x800) == 0) {
			one->early |= core(second & 15);
		} else if ((second & 0x100) != 0) {
			one->moved = base;
		}
	}
	if (second >> 12 == 15 && (first & 0x10) != 0 && !is_word) {
		return; /* PLD */
	}
	load_or_store(one, second >> 12 == 15 ? CORE(15) : core(second >> 12), (first & 0x10) != 0,
		      is_word);
}

/** Data processing with registers: A5.3.12 to A5.3.15. */
static inline void m7_wide_registers(struct m7_instruction *one, uint32_t first, uint32_t second)
{
	const uint32_t op = first >> 4 & 15, kind = second >> 4 & 15;

	one->reads = core(first & 15) | core(second & 15);
	one->writes = core(second >> 8 & 15);
	if (op < 8 && kind == 0) { /* shifts by a register */
		one->units = UNIT_SHIFT;
		one->writes |= (op & 1) != 0 ? CORE(FLAGS) : 0;
	} else if (op < 8) { /* SXTB and the like, SXTAB and the like */
		one->units = UNIT_SIMD;
		if ((first & 15) != 15) {
			one->units |= UNIT_SHIFT;
			one->early = core(second & 15);
			one->reads = core(first & 15);
		}
	} else if (kind < 8) { /* parallel addition and subtraction; saturating ones take longer */
		one->units = UNIT_SIMD;
		one->latency = (kind & 3) == 1 ? 2 : 1;
	} else if (op == 8) { /* QADD, QDADD, QSUB, QDSUB */
		one->units = UNIT_SIMD;
		one->latency = 2;
	} else if (op == 9) { /* REV, RBIT */
		one->units = UNIT_SIMD | UNIT_SHIFT;
	} else { /* SEL, CLZ */
		one->units = UNIT_SIMD;
	}
}

/** Multiplications and divisions: A5.3.16, A5.3.17. */
static inline void m7_wide_multiply(struct m7_instruction *one, uint32_t first, uint32_t second)
{
	const uint32_t op = first >> 4 & 15;

	one->reads = core(first & 15) | core(second & 15);
	one->writes = core(second >> 8 & 15);
	one->units = UNIT_MAC;
	one->latency = 2;
	if (op == 9 || op == 11) { /* SDIV, UDIV */
		one->units = 0;
		one->is_alone = true;
		one->cycles = 7;
		one->latency = 7;
	} else if (op == 7) { /* USAD8, USADA8 */
		one->units = UNIT_SIMD;
		one->late = core(second >> 12);
	} else if (op < 8) {
		one->late = core(second >> 12);
	} else {
		one->writes |= core(second >> 12);
		one->late = op == 8 || op == 10 ? 0 : one->writes;
	}
}

/** The registers of a VFP operand: a single one, or both halves of a double one. */
static inline uint64_t vfp(uint32_t number, uint32_t bit, bool is_double)
{
	return is_double ? UINT64_C(3) << (32 + ((number << 1) & 31))
			 : SINGLE((number << 1 | bit) & 31);
}

/** Loads, stores and moves of the FPU: A6.5 to A6.7. */
static inline void m7_vfp_transfer(struct m7_instruction *one, uint32_t first, uint32_t second)
{
	const bool is_double = (second & 0x100) != 0, is_load = (first & 0x10) != 0;
	const uint64_t base = core(first & 15);
	const uint64_t data = vfp(second >> 12, first >> 6 & 1, is_double);

	if ((first & 0xff00) == 0xee00) { /* VMOV of a core register, VMRS */
		const uint64_t other = vfp(first & 15, second >> 7 & 1, false);
		const bool is_flags = (second >> 12) == 15;

		one->units = UNIT_FPU;
		one->latency = 3;
		one->reads = is_load ? other : core(second >> 12);
		one->writes = is_flags ? CORE(FLAGS) : is_load ? core(second >> 12) : other;
		return;
	}
	if ((first & 0xffe0) == 0xec40) { /* VMOV of two core registers */
		const uint64_t both = core(second >> 12) | core(first & 15);
		const uint64_t others = vfp(second & 15, second >> 5 & 1, is_double) |
					(is_double ? 0 : vfp(second & 15, 1, false));

		one->units = UNIT_FPU;
		one->latency = 3;
		one->reads = is_load ? others : both;
		one->writes = is_load ? both : others;
		return;
	}
	one->early = base;
	if ((first & 0x0120) == 0x0100) { /* VLDR, VSTR */
		transfer(one, data, is_double ? 2 : 1, is_load);
		return;
	}
	one->moved = (first & 0x20) != 0 ? base : 0;
	{
		const int words = (int)(second & 0xff);
		const uint32_t start =
			is_double ? (second >> 12) << 1 : (second >> 12) << 1 | (first >> 6 & 1);
		const uint64_t all =
			words >= 32 ? UINT64_C(0xffffffff) : (UINT64_C(1) << words) - 1;

		transfer(one, all << (32 + (start & 31)), words, is_load);
	}
}

/** Arithmetic of the FPU: A6.4. */
static inline void m7_vfp_data(struct m7_instruction *one, uint32_t first, uint32_t second)
{
	const bool is_double = (second & 0x100) != 0;
	const uint32_t op = first >> 4 & 11;
	const uint64_t d = vfp(second >> 12, first >> 6 & 1, is_double);
	const uint64_t n = vfp(first & 15, second >> 7 & 1, is_double);
	const uint64_t m = vfp(second & 15, second >> 5 & 1, is_double);

	one->units = UNIT_FPU;
	one->latency = is_double ? 4 : 3;
	one->writes = d;
	one->reads = n | m;
	if (op < 2 || op == 9 || op == 10) { /* VMLA, VMLS, VNMLA, VFMA and the like */
		const bool is_fused = op >= 8;

		one->addends = d;
		one->addend_cycles = is_double ? 8 : is_fused ? 2 : 3;
		one->latency = is_double ? 11 : is_fused ? 5 : 6;
	} else if (op == 2 && is_double) {
		one->latency = 7;
	} else if (op == 8) { /* VDIV */
		one->cycles = one->latency = is_double ? 30 : 16;
	} else if (op == 11) { /* VMOV, VABS, VNEG, VSQRT, VCMP, conversions */
		one->reads = (second & 0x40) != 0 ? m : 0; /* VMOV of a constant */
		if ((first & 15) == 1 && (second & 0xc0) == 0xc0) {
			one->cycles = one->latency = is_double ? 30 : 16; /* VSQRT */
		} else if ((first & 14) == 4) {
			one->reads |= d;
			one->writes = 0; /* VCMP: its flags are read by VMRS */
		}
	}
}

static inline void m7_wide(struct m7_instruction *one, uint32_t first, uint32_t second)
{
	if ((first & 0xfe00) == 0xe800) {
		m7_wide_multiple(one, first, second);
	} else if ((first & 0xfe00) == 0xea00) {
		m7_wide_data(one, first, second, true);
	} else if ((first & 0xf800) == 0xf000) {
		if ((second & 0x8000) != 0) {
			one->units = UNIT_BRANCH;
			one->reads = (second & 0x5000) == 0 ? CORE(FLAGS) : 0;
			one->writes = (second & 0x4000) != 0 ? CORE(14) : 0;
			one->is_backward = (first & 0x400) != 0;
		} else if ((first & 0x0200) != 0) {
			m7_wide_plain(one, first, second);
		} else {
			m7_wide_data(one, first, second, false);
		}
	} else if ((first & 0xfe00) == 0xf800) {
		m7_wide_single(one, first, second);
	} else if ((first & 0xff00) == 0xfa00) {
		m7_wide_registers(one, first, second);
	} else if ((first & 0xff00) == 0xfb00) {
		m7_wide_multiply(one, first, second);
	} else if ((first & 0xef00) == 0xee00 && (second & 0x10) == 0) {
		m7_vfp_data(one, first, second);
	} else if ((first & 0xec00) == 0xec00) {
		m7_vfp_transfer(one, first, second);
	}
}

/** Read an instruction of `size` bytes. */
static inline struct m7_instruction m7_read(const uint8_t *bytes, size_t size)
{
	struct m7_instruction one = {.latency = 1, .cycles = 1};
	const uint32_t first = bytes[0] | (uint32_t)bytes[1] << 8;

	if (size == 2) {
		m7_narrow(&one, first);
	} else {
		m7_wide(&one, first, bytes[2] | (uint32_t)bytes[3] << 8);
	}
	return one;
}

#endif

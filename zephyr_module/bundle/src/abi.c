/* SPDX-License-Identifier: Apache-2.0 */
#include <opwest/bundle.h>
#include <opwest/devices.h>
#include <opwest/model.h>
#include <opwest/port.h>

#include "bundle_internal.h"
#include "format_internal.h"

/*
 * Newer cores execute the code of older ones. GCC 12 has no macro for Armv8.1-M: its vector
 * extension, or Zephyr's configuration, implies it.
 */
#if defined(__ARM_ARCH_8_1M_MAIN__) || defined(__ARM_FEATURE_MVE) ||                               \
	defined(CONFIG_ARMV8_1_M_MAINLINE)
#define CPU_CORE                                                                                   \
	(OPWEST_BUNDLE_CPU_ARMV6M | OPWEST_BUNDLE_CPU_ARMV7M | OPWEST_BUNDLE_CPU_ARMV8M_BASE |     \
	 OPWEST_BUNDLE_CPU_ARMV8M_MAIN | OPWEST_BUNDLE_CPU_ARMV81M_MAIN)
#elif defined(__ARM_ARCH_8M_MAIN__)
#define CPU_CORE                                                                                   \
	(OPWEST_BUNDLE_CPU_ARMV6M | OPWEST_BUNDLE_CPU_ARMV7M | OPWEST_BUNDLE_CPU_ARMV8M_BASE |     \
	 OPWEST_BUNDLE_CPU_ARMV8M_MAIN)
#elif defined(__ARM_ARCH_8M_BASE__)
#define CPU_CORE (OPWEST_BUNDLE_CPU_ARMV6M | OPWEST_BUNDLE_CPU_ARMV8M_BASE)
#elif defined(__ARM_ARCH_7M__) || defined(__ARM_ARCH_7EM__)
#define CPU_CORE (OPWEST_BUNDLE_CPU_ARMV6M | OPWEST_BUNDLE_CPU_ARMV7M)
#elif defined(__ARM_ARCH_6M__)
#define CPU_CORE OPWEST_BUNDLE_CPU_ARMV6M
#else
#define CPU_CORE 0U
#endif

#ifdef __ARM_FEATURE_DSP
#define CPU_DSP OPWEST_BUNDLE_CPU_ARM_DSP
#else
#define CPU_DSP 0U
#endif

/* Bits 1 to 3 of __ARM_FP: half, single and double precision in hardware (ACLE). */
#if defined(__ARM_FP) && defined(__arm__)
#define CPU_FP                                                                                     \
	((((__ARM_FP) & 2) != 0 ? OPWEST_BUNDLE_CPU_ARM_FP_HALF : 0U) |                            \
	 (((__ARM_FP) & 4) != 0 ? OPWEST_BUNDLE_CPU_ARM_FP_SINGLE : 0U) |                          \
	 (((__ARM_FP) & 8) != 0 ? OPWEST_BUNDLE_CPU_ARM_FP_DOUBLE : 0U))
#else
#define CPU_FP 0U
#endif

/* Bit 0: integers, bit 1: floating point (ACLE). */
#ifdef __ARM_FEATURE_MVE
#define CPU_MVE                                                                                    \
	((((__ARM_FEATURE_MVE) & 1) != 0 ? OPWEST_BUNDLE_CPU_ARM_MVE : 0U) |                       \
	 (((__ARM_FEATURE_MVE) & 2) != 0 ? OPWEST_BUNDLE_CPU_ARM_MVE_FP : 0U))
#else
#define CPU_MVE 0U
#endif

#if defined(__riscv_32e) || defined(__riscv_64e)
#define CPU_E OPWEST_BUNDLE_CPU_RISCV_E
#else
#define CPU_E 0U
#endif
#ifdef __riscv_mul
#define CPU_M OPWEST_BUNDLE_CPU_RISCV_M
#else
#define CPU_M 0U
#endif
#ifdef __riscv_atomic
#define CPU_A OPWEST_BUNDLE_CPU_RISCV_A
#else
#define CPU_A 0U
#endif
#ifdef __riscv_flen
#define CPU_F                                                                                      \
	((__riscv_flen >= 32 ? OPWEST_BUNDLE_CPU_RISCV_F : 0U) |                                   \
	 (__riscv_flen >= 64 ? OPWEST_BUNDLE_CPU_RISCV_D : 0U))
#else
#define CPU_F 0U
#endif
#ifdef __riscv_compressed
#define CPU_C OPWEST_BUNDLE_CPU_RISCV_C
#else
#define CPU_C 0U
#endif
#if defined(__riscv_zba) && defined(__riscv_zbb) && defined(__riscv_zbs)
#define CPU_B OPWEST_BUNDLE_CPU_RISCV_B
#else
#define CPU_B 0U
#endif
#if defined(__riscv_v) || defined(__riscv_vector)
#define CPU_V OPWEST_BUNDLE_CPU_RISCV_V
#else
#define CPU_V 0U
#endif

#define CPU                                                                                        \
	(CPU_CORE | CPU_DSP | CPU_FP | CPU_MVE | CPU_E | CPU_M | CPU_A | CPU_F | CPU_C | CPU_B |   \
	 CPU_V)

/* An enumeration of its own: the size of those of the API is theirs. */
enum smallest {
	SMALLEST = 1,
};

#define LAYOUT                                                                                     \
	(sizeof(enum smallest) < sizeof(int) ? (uint16_t)OPWEST_BUNDLE_LAYOUT_SHORT_ENUMS : 0U)

/* A field that has to equal the firmware's own. */
struct field {
	uint32_t found;
	uint32_t expected;
	/* The offset of the field in the file. */
	uint8_t at;
	/* enum opwest_bundle_fault */
	uint8_t fault;
};

static bool is_compatible_cpu(uint32_t cpu)
{
	/* Code for 32 registers has no bit: RV32E and RV32I exclude each other. */
	return (cpu & ~(uint32_t)CPU) == 0U && ((cpu ^ CPU) & OPWEST_BUNDLE_CPU_RISCV_E) == 0U;
}

bool opwest_bundle_abi_agrees(const struct opwest_bundle_header *header,
			      struct opwest_bundle_verdict *verdict)
{
	const struct opwest_bundle_abi *const abi = &header->abi;
	const struct field fields[] = {
		{abi->machine, OPWEST_ABI_MACHINE, OPWEST_BUNDLE_AT_MACHINE, OPWEST_BUNDLE_MACHINE},
		{abi->pointer_size, OPWEST_ABI_POINTER_SIZE, OPWEST_BUNDLE_AT_POINTER_SIZE,
		 OPWEST_BUNDLE_MACHINE},
		{abi->big_endian, OPWEST_ABI_BIG_ENDIAN, OPWEST_BUNDLE_AT_BIG_ENDIAN,
		 OPWEST_BUNDLE_MACHINE},
		{abi->float_abi, OPWEST_ABI_FLOAT, OPWEST_BUNDLE_AT_FLOAT_ABI,
		 OPWEST_BUNDLE_FLOAT_ABI},
		{abi->metadata_version, OPWEST_METADATA_VERSION, OPWEST_BUNDLE_AT_METADATA_VERSION,
		 OPWEST_BUNDLE_LAYOUT},
		{abi->layout & ~OPWEST_BUNDLE_LAYOUT_STEPS, LAYOUT, OPWEST_BUNDLE_AT_LAYOUT,
		 OPWEST_BUNDLE_LAYOUT},
		{abi->slot_size,
		 abi->device_count != 0U ? (uint32_t)sizeof(struct opwest_slot) : 0U,
		 OPWEST_BUNDLE_AT_SLOT_SIZE, OPWEST_BUNDLE_LAYOUT},
	};

	for (size_t i = 0U; i < OPWEST_ARRAY_SIZE(fields); i++) {
		if (fields[i].found != fields[i].expected) {
			return opwest_bundle_refuse(
				verdict, (enum opwest_bundle_fault)fields[i].fault, fields[i].at,
				fields[i].found, fields[i].expected);
		}
	}
	if (!is_compatible_cpu(abi->cpu)) {
		return opwest_bundle_refuse(verdict, OPWEST_BUNDLE_CPU, OPWEST_BUNDLE_AT_CPU,
					    abi->cpu, CPU);
	}
	if (abi->host_version == 0U || abi->host_version > OPWEST_HOST_VERSION) {
		return opwest_bundle_refuse(verdict, OPWEST_BUNDLE_LAYOUT,
					    OPWEST_BUNDLE_AT_HOST_VERSION, abi->host_version,
					    OPWEST_HOST_VERSION);
	}
	return true;
}

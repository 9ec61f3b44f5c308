/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief Two NPUs with registers in memory, simulated by a timer that raises their interrupts.
 *
 * All drivers are real. The devicetree has the nodes fake0 and fake1 in place of the NPUs. A
 * simulated NPU adds the first number of its command stream to region 0 and writes region 1, after
 * some milliseconds.
 */
#ifndef ETHOS_U_REGISTERS_H_
#define ETHOS_U_REGISTERS_H_

#include <stdbool.h>
#include <stdint.h>

#include <zephyr/kernel.h>
#include <opwest/launch.h>

#define SIMULATED_NPUS 2
/** The size of the two regions. */
#define SIMULATED_SIZE 16

/** Indices of the registers, which are words. */
enum simulated_register {
	ID,
	STATUS,
	CMD,
	RESET,
	QBASE,
	QSIZE = 8,
	PROT,
	CONFIG,
	BASEP = 32,
	PMCR = 96,
	PMCNTENSET,
	PMCCNTR = 104,
	PMEVCNTR = 192,
	PMEVTYPER = 224,
};

/** Contents of CONFIG and ID. */
#define MACS         7U
#define ARCHITECTURE 0x10100000U

/** Contents of STATUS at the end of a command stream. */
#define FINE      0x20U
#define BUS_FAULT 0x04U
/** It does not end: there is no interrupt. */
#define HANG      0U

/** The content of RESET after the simulation has seen a reset. */
#define NOT_RESET 0xffffffffU

/** A command that a word of data follows, and NPU_OP_STOP. */
#define DATA 0x4000U
#define STOP 0xffff0000U

/**
 * @brief Define a program: three commands with data, and NPU_OP_STOP.
 *
 * @param name  Its name.
 * @param added The addend.
 * @param ms    The duration.
 * @param end   The status at its end.
 */
#define SIMULATED_PROGRAM(name, added, ms, end)                                                    \
	static const uint32_t name##_words[] __aligned(16) = {                                     \
		0x31504f43, 1,    MACS,  ARCHITECTURE, 5,  5,    5,   0x00070002,                  \
		DATA,       added, DATA, ms,           DATA, end, STOP};                           \
	static const struct opwest_program name = {#name, (const uint8_t *)name##_words,           \
						   sizeof(name##_words)}

/** What an inference can be made to do. */
enum simulated_fault {
	/** It ends after simulated_npu_release(), or by a reset. */
	SIMULATED_HOLD,
	/** It ends with a fault of the bus. */
	SIMULATED_FAIL,
	SIMULATED_FAULTS,
};

/** A simulated NPU. The members are for the simulation, except for those that say so. */
struct simulated_npu {
	/** For all. */
	volatile uint32_t *registers;
	/** For all. */
	unsigned int irq;
	/** Inferences that the vendor's driver started; for readers. */
	volatile uint32_t runs;
	/** Command streams that were not those of the inference before; for readers. */
	volatile uint32_t loads;
	/** The vendor's driver has started an inference and not finished it; for readers. */
	volatile bool is_busy;
	uint32_t stream;
	/** The end of the running command stream; -1 if none is running. */
	int64_t end;
	/** The number of inferences up to the one with a fault; 0 without one. */
	uint32_t pending[SIMULATED_FAULTS];
	/** The faults of the inference that the vendor's driver started, and of the running one. */
	bool next[SIMULATED_FAULTS];
	bool has[SIMULATED_FAULTS];
};

/** With the registers of fake0 and fake1. They are reset, and run, before main(). */
extern struct simulated_npu simulated_npus[SIMULATED_NPUS];

/** The timer; without it the registers keep what is written. */
extern struct k_timer simulated_time;

/** @brief Start the timer again after k_timer_stop(). */
void simulated_time_start(void);

/** @brief Give a fault to an inference: `after` inferences start before it. */
void simulated_npu_inject(struct simulated_npu *npu, enum simulated_fault fault, uint32_t after);

/** @brief Let the held inference end; if none is held, the next one is not held. */
void simulated_npu_release(struct simulated_npu *npu);

/** @brief Remove faults that have not happened. */
void simulated_npu_forget(struct simulated_npu *npu);

#endif /* ETHOS_U_REGISTERS_H_ */

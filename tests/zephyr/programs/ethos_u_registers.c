/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timer looks at the registers each millisecond, so it can miss the start of an inference that
 * is aborted at once. The vendor's hooks tell the start and the end of each inference.
 */
#include <string.h>

#include <zephyr/devicetree.h>
#include <zephyr/init.h>
#include <zephyr/irq.h>
#include <cmsis_core.h>
#include <ethosu_driver.h>

#include "ethos_u_registers.h"

/* Indices of the words of a command stream. */
enum { ADDEND = 1, DURATION = 3, END = 5 };

#define COUNTERS 4
#define ENABLED  0x8000000fU

#define SIMULATED(node)                                                                            \
	{                                                                                          \
		.registers = (volatile uint32_t *)DT_REG_ADDR(DT_NODELABEL(node)),                 \
		.irq = DT_IRQN(DT_NODELABEL(node)), .end = -1,                                     \
	}

struct simulated_npu simulated_npus[SIMULATED_NPUS] = {SIMULATED(fake0), SIMULATED(fake1)};

static struct simulated_npu *simulated_by(const struct ethosu_driver *driver)
{
	struct simulated_npu *npu = simulated_npus;

	while ((uintptr_t)npu->registers != (uintptr_t)driver->dev.reg) {
		npu++;
	}
	return npu;
}

static void see_reset(struct simulated_npu *npu)
{
	if (npu->registers[RESET] != NOT_RESET) {
		npu->registers[RESET] = NOT_RESET;
		npu->registers[STATUS] = 0;
		npu->end = -1;
	}
}

void ethosu_inference_begin(struct ethosu_driver *driver, void *user)
{
	struct simulated_npu *const npu = simulated_by(driver);
	const unsigned int key = irq_lock();

	ARG_UNUSED(user);
	see_reset(npu);
	npu->runs++;
	npu->is_busy = true;
	for (int fault = 0; fault < SIMULATED_FAULTS; fault++) {
		npu->next[fault] = npu->pending[fault] == 1U;
		npu->pending[fault] -= npu->pending[fault] > 0U ? 1U : 0U;
	}
	irq_unlock(key);
}

void ethosu_inference_end(struct ethosu_driver *driver, void *user)
{
	ARG_UNUSED(user);
	simulated_by(driver)->is_busy = false;
}

static void start(struct simulated_npu *npu)
{
	const uint32_t stream = npu->registers[QBASE];

	/* A driver that only forgets an inference has not ended it: a reset does. */
	if (npu->end >= 0) {
		return;
	}
	memcpy(npu->has, npu->next, sizeof(npu->has));
	memset(npu->next, 0, sizeof(npu->next));
	npu->registers[STATUS] = 0;
	npu->loads += stream != npu->stream ? 1U : 0U;
	npu->stream = stream;
	npu->end = k_uptime_get() + ((const uint32_t *)stream)[DURATION];
}

static void count(struct simulated_npu *npu, uint32_t cycles)
{
	if ((npu->registers[PMCR] & 1U) == 0U || npu->registers[PMCNTENSET] != ENABLED) {
		return;
	}
	npu->registers[PMCCNTR] = cycles;
	for (int i = 0; i < COUNTERS; i++) {
		npu->registers[PMEVCNTR + i] = npu->registers[PMEVTYPER + i];
	}
}

static void finish(struct simulated_npu *npu)
{
	const uint32_t *const stream = (const uint32_t *)npu->registers[QBASE];
	const uint8_t *const in = (const uint8_t *)npu->registers[BASEP];
	uint8_t *const out = (uint8_t *)npu->registers[BASEP + 2];
	const uint32_t status = npu->has[SIMULATED_FAIL] ? BUS_FAULT : stream[END];

	npu->end = -1;
	for (int i = 0; i < SIMULATED_SIZE && status == FINE; i++) {
		out[i] = (uint8_t)(in[i] + stream[ADDEND]);
	}
	count(npu, stream[DURATION] * 1000U);
	npu->registers[STATUS] = status;
	if (status != HANG) {
		NVIC_SetPendingIRQ((IRQn_Type)npu->irq);
	}
}

static void look(struct k_timer *timer)
{
	ARG_UNUSED(timer);
	for (int i = 0; i < SIMULATED_NPUS; i++) {
		struct simulated_npu *const npu = &simulated_npus[i];

		see_reset(npu);
		if ((npu->registers[CMD] & 1U) != 0U) {
			npu->registers[CMD] &= ~1U;
			start(npu);
		}
		if (npu->end >= 0 && k_uptime_get() >= npu->end && !npu->has[SIMULATED_HOLD]) {
			finish(npu);
		}
	}
}

K_TIMER_DEFINE(simulated_time, look, NULL);

void simulated_time_start(void)
{
	k_timer_start(&simulated_time, K_MSEC(1), K_MSEC(1));
}

void simulated_npu_inject(struct simulated_npu *npu, enum simulated_fault fault, uint32_t after)
{
	const unsigned int key = irq_lock();

	npu->pending[fault] = after + 1U;
	irq_unlock(key);
}

void simulated_npu_release(struct simulated_npu *npu)
{
	const unsigned int key = irq_lock();

	if (npu->end >= 0 && npu->has[SIMULATED_HOLD] && npu->registers[RESET] == NOT_RESET) {
		npu->has[SIMULATED_HOLD] = false;
	} else if (npu->is_busy && npu->next[SIMULATED_HOLD]) {
		npu->next[SIMULATED_HOLD] = false;
	} else if (npu->pending[SIMULATED_HOLD] == 1U) {
		npu->pending[SIMULATED_HOLD] = 0U;
	}
	irq_unlock(key);
}

void simulated_npu_forget(struct simulated_npu *npu)
{
	const unsigned int key = irq_lock();

	memset(npu->pending, 0, sizeof(npu->pending));
	irq_unlock(key);
}

static int prepare(void)
{
	for (int i = 0; i < SIMULATED_NPUS; i++) {
		simulated_npus[i].registers[ID] = ARCHITECTURE;
		simulated_npus[i].registers[CONFIG] = MACS;
		simulated_npus[i].registers[RESET] = NOT_RESET;
	}
	simulated_time_start();
	return 0;
}

/* After the drivers: memory reads as an unprivileged NPU. */
SYS_INIT(prepare, APPLICATION, 0);

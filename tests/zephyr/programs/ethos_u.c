/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two NPUs with registers in memory, simulated by a timer that raises their interrupts: all drivers are real. The NPU
 * of the test adds the command stream's first byte to region 0 and writes region 1, after some milliseconds.
 */
#include <stdio.h>
#include <string.h>

#include <zephyr/device.h>
#include <zephyr/irq.h>
#include <zephyr/kernel.h>
#include <cmsis_core.h>
#include <ethosu_driver.h>
#include <opwest/ethos_u.h>

#define NPU0 DEVICE_DT_GET(DT_NODELABEL(npu0))
#define NPU1 DEVICE_DT_GET(DT_NODELABEL(npu1))

enum { ID, STATUS, CMD, RESET, QBASE, QSIZE = 8, PROT, CONFIG, BASEP = 32 };
#define MACS 7U
#define ARCHITECTURE 0x10100000U
#define FINE 0x20U
#define BUS_FAULT 0x04U
#define HANG 0U
#define NOT_RESET 0xffffffffU

/* A command stream of the test: the addend, the duration, the status at its end. */
#define PROGRAM(name, added, ms, end)                                                              \
	static const uint32_t name##_words[] __aligned(16) = {                                     \
		0x31504f43, 0x00000001, MACS, ARCHITECTURE, 5, 5, 5, 0x00030002, added, ms, end};  \
	static const struct opwest_program name = {#name, (const uint8_t *)name##_words,           \
						   sizeof(name##_words)}
PROGRAM(fast, 1, 2, FINE);
PROGRAM(slow, 2, 50, FINE);
PROGRAM(fault, 3, 5, BUS_FAULT);
PROGRAM(hang, 4, 5, HANG);

struct fake {
	volatile uint32_t *registers;
	unsigned int irq;
	uint32_t runs;
	int64_t end;
};
static struct fake fakes[] = {
	{(volatile uint32_t *)DT_REG_ADDR(DT_NODELABEL(fake0)), DT_IRQN(DT_NODELABEL(fake0)), 0, -1},
	{(volatile uint32_t *)DT_REG_ADDR(DT_NODELABEL(fake1)), DT_IRQN(DT_NODELABEL(fake1)), 0, -1},
};

static void finish(struct fake *fake)
{
	const uint32_t *const stream = (const uint32_t *)fake->registers[QBASE];
	const uint8_t *const in = (const uint8_t *)fake->registers[BASEP];
	uint8_t *const out = (uint8_t *)fake->registers[BASEP + 2];

	fake->end = -1;
	for (int i = 0; i < 16 && stream[2] == FINE; i++) {
		out[i] = (uint8_t)(in[i] + stream[0]);
	}
	fake->registers[STATUS] = stream[2];
	if (stream[2] != HANG) {
		NVIC_SetPendingIRQ((IRQn_Type)fake->irq);
	}
}

static void play(struct k_timer *timer)
{
	ARG_UNUSED(timer);
	for (int i = 0; i < 2; i++) {
		struct fake *const fake = &fakes[i];

		if (fake->registers[RESET] != NOT_RESET) {
			fake->registers[RESET] = NOT_RESET;
			fake->registers[STATUS] = 0;
			fake->end = -1;
		}
		if ((fake->registers[CMD] & 1U) != 0U) {
			fake->registers[CMD] &= ~1U;
			fake->registers[STATUS] = 0;
			fake->runs++;
			fake->end = k_uptime_get() + ((const uint32_t *)fake->registers[QBASE])[1];
		}
		if (fake->end >= 0 && k_uptime_get() >= fake->end) {
			finish(fake);
		}
	}
}
static K_TIMER_DEFINE(player, play, NULL);

static uint8_t in[16] __aligned(16), out[4][16] __aligned(16);
static int checks, failures;

#define CHECK(what, got, expected)                                                                 \
	do {                                                                                       \
		const int value = (got);                                                           \
                                                                                                   \
		checks++;                                                                          \
		if (value != (expected)) {                                                         \
			failures++;                                                                \
			printf("WRONG: %s: %d, not %d\n", what, value, expected);                  \
		}                                                                                  \
	} while (0)

static struct opwest_ethos_u_inference into(uint8_t *result, const struct opwest_program *program)
{
	return (struct opwest_ethos_u_inference){
		.program = program, .count = 2, .regions = {{in, sizeof(in)}, {result, 16}}};
}

static bool all(const uint8_t *result, uint8_t added)
{
	for (int i = 0; i < 16; i++) {
		if (result[i] != (uint8_t)(in[i] + added)) {
			return false;
		}
	}
	return true;
}

static int enqueue(const struct device *npu, uint8_t *result, const struct opwest_program *program)
{
	const struct opwest_ethos_u_inference inference = into(result, program);

	return opwest_ethos_u_enqueue(npu, &inference);
}

static int run(uint8_t *result, const struct opwest_program *program, int32_t timeout_ms)
{
	const struct opwest_ethos_u_inference inference = into(result, program);

	memset(result, 0, 16);
	return opwest_ethos_u_run(NPU0, &inference, timeout_ms);
}

static int try_program(const uint32_t *words, uint32_t size)
{
	const struct opwest_program program = {"bad", (const uint8_t *)words, size};
	const int rc = opwest_accelerator_activate(NPU0, &program);

	if (rc == 0) {
		(void)opwest_accelerator_deactivate(NPU0);
	}
	return rc;
}

static void programs(void)
{
	static const struct {
		const char *what;
		uint32_t size;
		int rc;
		uint32_t words[16] __aligned(16);
	} cases[] = {
#define CASE(what, size, rc, ...) {what, (size) * 4, rc, {__VA_ARGS__}}
		CASE("right", 10, 0, 0x31504f43, 1, MACS, ARCHITECTURE, 5, 5, 5, 0x00020002, 0, 0),
		CASE("no configuration", 8, 0, 0x31504f43, 5, 5, 0x00040002, 0, 0, 0, 0),
		CASE("NOPs behind", 6, 0, 0x31504f43, 5, 5, 0x00010002, 0, 5),
		CASE("empty", 0, -EINVAL, 0x31504f43),
		CASE("no name", 6, -EINVAL, 0x31504f44, 5, 5, 0x00010002, 0, 5),
		CASE("no stream", 4, -EINVAL, 0x31504f43, 5, 5, 5),
		CASE("empty stream", 4, -EINVAL, 0x31504f43, 5, 5, 0x00000002),
		CASE("two streams", 13, -EINVAL, 0x31504f43, 5, 5, 0x00070002, 0, 0, 0, 0, 0, 0, 0, 0x00010002, 0),
		CASE("not aligned", 4, -EINVAL, 0x31504f43, 5, 0x00010002, 0),
		CASE("cut short", 5, -EINVAL, 0x31504f43, 5, 5, 0x00020002, 0),
		CASE("huge", 5, -EINVAL, 0x31504f43, 5, 5, 0xffffff02, 0),
		CASE("configuration cut short", 3, -EINVAL, 0x31504f43, 1, MACS),
		CASE("unknown action", 5, -EINVAL, 0x31504f43, 5, 3, 0x00010002, 0),
		CASE("other MACs", 9, -EINVAL, 0x31504f43, 1, 8, ARCHITECTURE, 5, 5, 5, 0x00010002, 0),
		CASE("other product", 9, -EINVAL, 0x31504f43, 1, MACS | 0x10000000, ARCHITECTURE, 5, 5, 5, 0x00010002, 0),
		CASE("other stream version", 9, -EINVAL, 0x31504f43, 1, MACS | 0x10, ARCHITECTURE, 5, 5, 5, 0x00010002, 0),
		CASE("custom DMA", 9, -EINVAL, 0x31504f43, 1, MACS | 0x8000000, ARCHITECTURE, 5, 5, 5, 0x00010002, 0),
		CASE("newer architecture", 9, -EINVAL, 0x31504f43, 1, MACS, 0x10200000, 5, 5, 5, 0x00010002, 0),
		CASE("older architecture", 9, 0, 0x31504f43, 1, MACS, 0x10000000, 5, 5, 5, 0x00010002, 0),
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CHECK(cases[i].what, try_program(cases[i].words, cases[i].size), cases[i].rc);
	}
	CHECK("odd size", try_program(cases[0].words, 39), -EINVAL);
}

static void rights(void)
{
	struct opwest_ethos_u_inference odd = into(out[0] + 8, NULL);

	CHECK("open before activate", opwest_accelerator_open(NPU0, 0), -EPERM);
	CHECK("deactivate before activate", opwest_accelerator_deactivate(NPU0), -EPERM);
	CHECK("activate", opwest_accelerator_activate(NPU0, &fast), 0);
	CHECK("activate again", opwest_accelerator_activate(NPU0, &fast), 0);
	CHECK("activate with another", opwest_accelerator_activate(NPU0, &slow), -EBUSY);
	CHECK("deactivate", opwest_accelerator_deactivate(NPU0), 0);
	CHECK("power", (int)opwest_ethos_u_driver(NPU0)->power_request_counter, 1);
	CHECK("enqueue before open", enqueue(NPU0, out[0], NULL), -EPERM);
	CHECK("open", opwest_accelerator_open(NPU0, OPWEST_FOREVER), 0);
	CHECK("open again", opwest_accelerator_open(NPU0, 10), -ETIMEDOUT);
	CHECK("sync of nothing", opwest_accelerator_sync(NPU0, 0), 0);
	CHECK("enqueue not aligned", opwest_ethos_u_enqueue(NPU0, &odd), -EINVAL);
	odd.count = 9;
	CHECK("too many regions", opwest_ethos_u_enqueue(NPU0, &odd), -EINVAL);
	CHECK("activate without a program", opwest_accelerator_activate(NPU1, NULL), 0);
	CHECK("open the other", opwest_accelerator_open(NPU1, 0), 0);
	CHECK("enqueue without a program", enqueue(NPU1, out[0], NULL), -EINVAL);
}

/* Both NPUs are open: npu0 with `fast`, npu1 without a program. */
static void inferences(void)
{
	const uint32_t runs = fakes[0].runs;
	int64_t began;

	CHECK("run", run(out[0], NULL, 100), 0);
	CHECK("result", all(out[0], 1), true);
	CHECK("size of the command stream", (int)fakes[0].registers[QSIZE], 12);

	began = k_uptime_get();
	CHECK("enqueue first", enqueue(NPU0, out[0], &slow), 0);
	CHECK("enqueue second", enqueue(NPU0, out[1], NULL), 0);
	CHECK("enqueue on the other", enqueue(NPU1, out[2], &slow), 0);
	CHECK("enqueue behind it", enqueue(NPU1, out[3], &slow), 0);
	CHECK("it does not wait", k_uptime_get() - began < 10, true);
	CHECK("sync", opwest_accelerator_sync(NPU0, 1000), 0);
	CHECK("first result", all(out[0], 2), true);
	CHECK("second result", all(out[1], 1), true);
	CHECK("sync of the other", opwest_accelerator_sync(NPU1, 1000), 0);
	CHECK("third result", all(out[2], 2), true);
	CHECK("fourth result", all(out[3], 2), true);
	CHECK("they overlap", k_uptime_get() - began < 130, true);
	CHECK("runs", (int)(fakes[0].runs - runs), 3);

	for (int i = 0; i < 3; i++) {
		CHECK("fill the queue", enqueue(NPU0, out[0], &slow), 0);
	}
	CHECK("full", enqueue(NPU0, out[0], NULL), -EBUSY);
	CHECK("sync of a full queue", opwest_accelerator_sync(NPU0, OPWEST_FOREVER), 0);
}

static void faults(void)
{
	const uint32_t runs = fakes[0].runs;

	CHECK("enqueue a fault", enqueue(NPU0, out[0], &fault), 0);
	CHECK("enqueue behind it", enqueue(NPU0, out[1], NULL), 0);
	CHECK("sync tells it", opwest_accelerator_sync(NPU0, 100), -EIO);
	CHECK("what was behind did not run", (int)(fakes[0].runs - runs), 1);
	CHECK("sync tells it once", opwest_accelerator_sync(NPU0, 100), 0);
	CHECK("run after a fault", run(out[0], NULL, 100), 0);
	CHECK("result after a fault", all(out[0], 1), true);
}

static void reopen(void)
{
	CHECK("open after an abort", opwest_accelerator_open(NPU0, 0), 0);
	CHECK("run after an abort", run(out[0], NULL, 100), 0);
	CHECK("result after an abort", all(out[0], 1), true);
	CHECK("power after an abort", (int)opwest_ethos_u_driver(NPU0)->power_request_counter, 1);
}

static void aborts(void)
{
	const uint32_t runs = fakes[0].runs;
	const int priority = k_thread_priority_get(k_current_get());
	uint32_t started;
	unsigned int key;

	CHECK("hang", run(out[0], &hang, 30), -ETIMEDOUT);
	CHECK("enqueue behind it", enqueue(NPU0, out[1], NULL), 0);
	CHECK("sync again", opwest_accelerator_sync(NPU0, 30), -ETIMEDOUT);
	fakes[0].registers[RESET] = NOT_RESET;
	k_timer_stop(&player);
	CHECK("close aborts", opwest_accelerator_close(NPU0), 0);
	CHECK("by a reset", (int)fakes[0].registers[RESET], 0);
	CHECK("nothing else started", (int)(fakes[0].runs - runs), 1);
	k_timer_start(&player, K_MSEC(1), K_MSEC(1));
	CHECK("close again", opwest_accelerator_close(NPU0), -EPERM);
	reopen();

	/* The timeout is short: the inference would end later. */
	CHECK("too slow", run(out[0], &slow, 10), -ETIMEDOUT);
	CHECK("close a slow one", opwest_accelerator_close(NPU0), 0);
	k_msleep(100);
	CHECK("it wrote nothing", all(out[0], 2), false);
	reopen();

	/* The interrupt is raised during the abort. */
	CHECK("hang again", run(out[0], &hang, 10), -ETIMEDOUT);
	key = irq_lock();
	NVIC_SetPendingIRQ((IRQn_Type)fakes[0].irq);
	CHECK("close with an interrupt", opwest_accelerator_close(NPU0), 0);
	irq_unlock(key);
	reopen();
	CHECK("no interrupt is left", run(out[0], &slow, 10), -ETIMEDOUT);
	CHECK("nor is it told early", opwest_accelerator_sync(NPU0, 200), 0);

	/* Right after it was enqueued, while it runs. */
	CHECK("enqueue and", enqueue(NPU0, out[0], &hang), 0);
	CHECK("close at once", opwest_accelerator_close(NPU0), 0);
	reopen();

	/* Before the driver's thread, which has a lower priority for the moment, has started it. */
	started = fakes[0].runs;
	k_thread_priority_set(k_current_get(), CONFIG_OPWEST_ETHOS_U_THREAD_PRIORITY - 1);
	CHECK("enqueue one", enqueue(NPU0, out[0], &hang), 0);
	CHECK("enqueue another", enqueue(NPU0, out[0], &slow), 0);
	CHECK("close before they start", opwest_accelerator_close(NPU0), 0);
	k_thread_priority_set(k_current_get(), priority);
	k_msleep(10);
	CHECK("they never do", (int)(fakes[0].runs - started), 0);
	reopen();
}

static void ends(void)
{
	CHECK("close", opwest_accelerator_close(NPU0), 0);
	CHECK("close the other", opwest_accelerator_close(NPU1), 0);
	CHECK("enqueue after close", enqueue(NPU0, out[0], NULL), -EPERM);
	CHECK("deactivate", opwest_accelerator_deactivate(NPU0), 0);
	CHECK("deactivate the other", opwest_accelerator_deactivate(NPU1), 0);
	CHECK("no power", (int)opwest_ethos_u_driver(NPU0)->power_request_counter, 0);
	CHECK("no power for the other", (int)opwest_ethos_u_driver(NPU1)->power_request_counter, 0);
	CHECK("activate with another program", opwest_accelerator_activate(NPU0, &slow), 0);
	CHECK("deactivate it", opwest_accelerator_deactivate(NPU0), 0);
}

/* An NPU that cannot be reset may still write: it is not used until it is programmed again. */
static void stuck(void)
{
	CHECK("activate", opwest_accelerator_activate(NPU0, &fast), 0);
	CHECK("open", opwest_accelerator_open(NPU0, 0), 0);
	CHECK("hang", run(out[0], &hang, 10), -ETIMEDOUT);
	k_timer_stop(&player);
	fakes[0].registers[STATUS] = 8; /* a reset that does not end */
	CHECK("close tells", opwest_accelerator_close(NPU0), -EIO);
	CHECK("open refuses", opwest_accelerator_open(NPU0, 0), -EIO);
	CHECK("deactivate", opwest_accelerator_deactivate(NPU0), 0);
	CHECK("activate refuses", opwest_accelerator_activate(NPU0, &fast), -EIO);
	fakes[0].registers[STATUS] = 0;
	fakes[0].registers[CMD] = 0;
	k_timer_start(&player, K_MSEC(1), K_MSEC(1));
	CHECK("activate after all", opwest_accelerator_activate(NPU0, &fast), 0);
	reopen();
	CHECK("close", opwest_accelerator_close(NPU0), 0);
	CHECK("deactivate", opwest_accelerator_deactivate(NPU0), 0);
}

static void tell_stack(const struct k_thread *thread, void *unused)
{
	size_t size;

	ARG_UNUSED(unused);
	if (strncmp(thread->name, "npu", 3) == 0 && k_thread_stack_space_get(thread, &size) == 0) {
		printf("stack of %s: %u of %u unused\n", thread->name, (unsigned int)size,
		       (unsigned int)thread->stack_info.size);
	}
}

int main(void)
{
	for (int i = 0; i < 2; i++) {
		fakes[i].registers[ID] = ARCHITECTURE;
		fakes[i].registers[CONFIG] = MACS;
		fakes[i].registers[RESET] = NOT_RESET;
	}
	for (int i = 0; i < 16; i++) {
		in[i] = (uint8_t)(i * 3);
	}
	k_timer_start(&player, K_MSEC(1), K_MSEC(1));
	CHECK("ready", device_is_ready(NPU0) && device_is_ready(NPU1), true);
	CHECK("reserved", opwest_ethos_u_driver(NPU0)->reserved && opwest_ethos_u_driver(NPU1)->reserved, true);
	CHECK("each its own", (uintptr_t)opwest_ethos_u_driver(NPU0)->dev.reg == DT_REG_ADDR(DT_NODELABEL(fake0)) &&
		(uintptr_t)opwest_ethos_u_driver(NPU1)->dev.reg == DT_REG_ADDR(DT_NODELABEL(fake1)), true);
	programs();
	rights();
	inferences();
	faults();
	aborts();
	ends();
	stuck();
	k_thread_foreach(tell_stack, NULL);
	printf("done: %d checks, %d wrong\n", checks, failures);
	return 0;
}

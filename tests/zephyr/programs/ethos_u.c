/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two simulated NPUs: what the conformance suite does not check of the hooks, queues, faults,
 * aborts, power and counters. All drivers are real.
 */
#include <stdio.h>
#include <string.h>

#include <zephyr/device.h>
#include <zephyr/irq.h>
#include <zephyr/kernel.h>
#include <zephyr/pm/device_runtime.h>
#include <zephyr/shell/shell_dummy.h>
#include <cmsis_core.h>
#include <ethosu_driver.h>
#include <pmu_ethosu.h>
#include <opwest/devices.h>
#include <opwest/ethos_u.h>
#include <opwest/profile_devices.h>
#include <opwest/status.h>

#include "ethos_u_registers.h"

#define NPU0 DEVICE_DT_GET(DT_NODELABEL(npu0))
#define NPU1 DEVICE_DT_GET(DT_NODELABEL(npu1))

SIMULATED_PROGRAM(fast, 1, 2, FINE);
SIMULATED_PROGRAM(slow, 2, 50, FINE);
SIMULATED_PROGRAM(fault, 3, 5, BUS_FAULT);
SIMULATED_PROGRAM(hang, 4, 5, HANG);

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

/* The vendor's hooks for caches: the model maintains them. */
static int maintained;

void ethosu_flush_dcache(uint32_t *p, size_t bytes)
{
	ARG_UNUSED(p);
	ARG_UNUSED(bytes);
	maintained++;
}

void ethosu_invalidate_dcache(uint32_t *p, size_t bytes)
{
	ethosu_flush_dcache(p, bytes);
}

static struct opwest_ethos_u_inference into(uint8_t *result)
{
	return (struct opwest_ethos_u_inference){
		.count = 2, .regions = {{in, sizeof(in)}, {result, 16}}};
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

static int launch(const struct device *npu, const struct opwest_ethos_u_inference *inference,
		  const struct opwest_program *program)
{
	const struct opwest_launch launched = {.dev = npu, .program = program, .step = 7};
	const int rc = opwest_accelerator_load(npu, program);

	return rc != 0 ? rc : opwest_ethos_u_enqueue(&launched, inference);
}

static int enqueue(const struct device *npu, uint8_t *result, const struct opwest_program *program)
{
	const struct opwest_ethos_u_inference inference = into(result);

	return launch(npu, &inference, program);
}

static int run(uint8_t *result, const struct opwest_program *program, int32_t timeout_ms)
{
	const struct opwest_ethos_u_inference inference = into(result);
	const struct opwest_launch launched = {
		.dev = NPU0, .program = program, .timeout_ms = timeout_ms, .step = OPWEST_NO_STEP};
	const int rc = opwest_accelerator_load(NPU0, program);

	memset(result, 0, 16);
	return rc != 0 ? rc : opwest_ethos_u_run(&launched, &inference);
}

static int try_program(const uint32_t *words, uint32_t size)
{
	const struct opwest_program program = {"bad", (const uint8_t *)words, size};

	return opwest_accelerator_check(NPU0, &program);
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
		CASE("right", 10, 0, 0x31504f43, 1, MACS, ARCHITECTURE, 5, 5, 5, 0x00020002, 0x100, STOP),
		CASE("older architecture", 9, 0, 0x31504f43, 1, MACS, 0x10000000, 5, 5, 5, 0x00010002, STOP),
		CASE("other MACs", 9, -EINVAL, 0x31504f43, 1, 8, ARCHITECTURE, 5, 5, 5, 0x00010002, STOP),
		CASE("other product", 9, -EINVAL, 0x31504f43, 1, MACS | 0x10000000, ARCHITECTURE, 5, 5, 5, 0x00010002,
		     STOP),
	};

	CHECK("activate", opwest_accelerator_activate(NPU0), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CHECK(cases[i].what, try_program(cases[i].words, cases[i].size), cases[i].rc);
	}
	CHECK("no program", opwest_accelerator_check(NPU0, NULL), 0);
	CHECK("fast", opwest_accelerator_check(NPU0, &fast), 0);
	CHECK("deactivate", opwest_accelerator_deactivate(NPU0), 0);
}

static void rights(void)
{
	struct opwest_ethos_u_inference odd = into(out[0] + 8);
	const struct opwest_ethos_u_inference fine = into(out[0]);
	const struct opwest_launch launched = {.dev = NPU0, .program = &slow};
	const struct opwest_program cut = {"cut", slow.data, slow.size - 4U};
	struct opwest_accelerator_info info;

	CHECK("info", opwest_accelerator_info(NPU0, &info), 0);
	CHECK("depth", info.queue_depth, 3);
	CHECK("switching", info.switching, OPWEST_SWITCH_FREE);
	CHECK("activate", opwest_accelerator_activate(NPU0), 0);
	CHECK("activate again", opwest_accelerator_activate(NPU0), 0);
	CHECK("deactivate", opwest_accelerator_deactivate(NPU0), 0);
	CHECK("power", (int)opwest_ethos_u_driver(NPU0)->power_request_counter, 1);
	CHECK("load before open", opwest_accelerator_load(NPU0, &fast), -EPERM);
	CHECK("open", opwest_accelerator_open(NPU0, OPWEST_FOREVER), 0);
	CHECK("enqueue not aligned", launch(NPU0, &odd, &fast), -EINVAL);
	odd.count = 9;
	CHECK("too many regions", launch(NPU0, &odd, &fast), -EINVAL);
	odd = into(NULL);
	CHECK("no array", launch(NPU0, &odd, &fast), -EINVAL);
	CHECK("a damaged program", opwest_accelerator_load(NPU0, &cut), -EINVAL);
	CHECK("none is loaded", opwest_ethos_u_enqueue(&launched, &fine), -EINVAL);
	CHECK("another program", opwest_accelerator_load(NPU0, &fast), 0);
	CHECK("another program than loaded", opwest_ethos_u_enqueue(&launched, &fine), -EINVAL);
	CHECK("without a program", enqueue(NPU0, out[0], NULL), -EINVAL);
	CHECK("nothing enqueued", (int)opwest_accelerator_enqueued(NPU0), 0);
	CHECK("activate the other", opwest_accelerator_activate(NPU1), 0);
	CHECK("open the other", opwest_accelerator_open(NPU1, 0), 0);
}

/* Both NPUs are open. */
static void inferences(void)
{
	const uint32_t runs = simulated_npus[0].runs;
	int64_t began;

	CHECK("run", run(out[0], &fast, 100), 0);
	CHECK("result", all(out[0], 1), true);
	CHECK("size of the command stream", (int)simulated_npus[0].registers[QSIZE], 28);

	began = k_uptime_get();
	CHECK("enqueue first", enqueue(NPU0, out[0], &slow), 0);
	CHECK("enqueue second", enqueue(NPU0, out[1], &fast), 0);
	CHECK("enqueue on the other", enqueue(NPU1, out[2], &slow), 0);
	CHECK("enqueue behind it", enqueue(NPU1, out[3], &slow), 0);
	CHECK("it does not wait", k_uptime_get() - began < 10, true);
	CHECK("sync", opwest_accelerator_sync(NPU0, 0, 1000), 0);
	CHECK("first result", all(out[0], 2), true);
	CHECK("second result", all(out[1], 1), true);
	CHECK("sync of the other", opwest_accelerator_sync(NPU1, 0, 1000), 0);
	CHECK("third result", all(out[2], 2), true);
	CHECK("fourth result", all(out[3], 2), true);
	CHECK("they overlap", k_uptime_get() - began < 130, true);
	CHECK("runs", (int)(simulated_npus[0].runs - runs), 3);

	began = k_uptime_get();
	for (int i = 0; i < 3; i++) {
		CHECK("fill the queue", enqueue(NPU0, out[i], &slow), 0);
	}
	CHECK("full", enqueue(NPU0, out[3], &fast), -EAGAIN);
	CHECK("full for its time-out", k_uptime_get() - began >= 20, true);
	CHECK("all", opwest_accelerator_sync(NPU0, 0, OPWEST_FOREVER), 0);
	CHECK("nothing maintains caches", maintained, 0);
}

/* npu1 has a fast memory, and returns at once if its queue is full. */
static void second_npu(void)
{
	struct opwest_ethos_u_inference spills = into(out[0]);
	int64_t began;

	spills.count = 3;
	spills.regions[2].size = 0x101;
	CHECK("fast memory too small", launch(NPU1, &spills, &fast), -ENOMEM);
	CHECK("no fast memory", launch(NPU0, &spills, &fast), -ENOMEM);
	spills.regions[2].size = 0x100;
	CHECK("fast memory", launch(NPU1, &spills, &slow), 0);
	CHECK("its sync", opwest_accelerator_sync(NPU1, 0, 1000), 0);
	CHECK("its address", (int)simulated_npus[1].registers[BASEP + 4], 0x313fe000);
	for (int i = 0; i < 4; i++) {
		CHECK("fill", enqueue(NPU1, out[1], &hang), 0);
	}
	began = k_uptime_get();
	CHECK("full", enqueue(NPU1, out[1], &fast), -EAGAIN);
	CHECK("at once", k_uptime_get() - began < 100, true);
	CHECK("close ends them", opwest_accelerator_close(NPU1), 0);
	CHECK("open again", opwest_accelerator_open(NPU1, 0), 0);
}

static void faults(void)
{
	const uint32_t runs = simulated_npus[0].runs;

	CHECK("enqueue a fault", enqueue(NPU0, out[0], &fault), 0);
	CHECK("enqueue behind it", enqueue(NPU0, out[1], &fast), 0);
	CHECK("sync tells it", opwest_accelerator_sync(NPU0, 0, 100), -EIO);
	CHECK("what was behind did not run", (int)(simulated_npus[0].runs - runs), 1);
	CHECK("sync tells it once", opwest_accelerator_sync(NPU0, 0, 100), 0);
	CHECK("enqueue a fault again", enqueue(NPU0, out[0], &fault), 0);
	k_msleep(20);
	CHECK("enqueue after it has failed", enqueue(NPU0, out[1], &fast), 0);
	CHECK("sync of one tells it", opwest_accelerator_sync(NPU0, 1, 100), -EIO);
	CHECK("the other was cancelled", opwest_accelerator_sync(NPU0, 0, 100), 0);
	CHECK("and did not run", (int)(simulated_npus[0].runs - runs), 2);
}

static void reopen(void)
{
	CHECK("open after an abort", opwest_accelerator_open(NPU0, 0), 0);
	CHECK("run after an abort", run(out[0], &fast, 100), 0);
	CHECK("result after an abort", all(out[0], 1), true);
	CHECK("power after an abort", (int)opwest_ethos_u_driver(NPU0)->power_request_counter, 1);
}

static void aborts(void)
{
	const uint32_t runs = simulated_npus[0].runs;
	const int priority = k_thread_priority_get(k_current_get());
	uint32_t started;
	unsigned int key;

	CHECK("hang", run(out[0], &hang, 30), -ETIMEDOUT);
	CHECK("enqueue behind it", enqueue(NPU0, out[1], &fast), 0);
	CHECK("sync again", opwest_accelerator_sync(NPU0, 0, 30), -ETIMEDOUT);
	simulated_npus[0].registers[RESET] = NOT_RESET;
	k_timer_stop(&simulated_time);
	CHECK("close aborts", opwest_accelerator_close(NPU0), 0);
	CHECK("by a reset", (int)simulated_npus[0].registers[RESET], 0);
	CHECK("nothing else started", (int)(simulated_npus[0].runs - runs), 1);
	simulated_time_start();
	CHECK("close again", opwest_accelerator_close(NPU0), -EPERM);
	reopen();

	/* The interrupt is raised during the abort. */
	CHECK("hang again", run(out[0], &hang, 10), -ETIMEDOUT);
	key = irq_lock();
	NVIC_SetPendingIRQ((IRQn_Type)simulated_npus[0].irq);
	CHECK("close with an interrupt", opwest_accelerator_close(NPU0), 0);
	irq_unlock(key);
	reopen();
	CHECK("no interrupt is left", run(out[0], &slow, 10), -ETIMEDOUT);
	CHECK("nor is it told early", opwest_accelerator_sync(NPU0, 0, 200), 0);

	/* Before the driver's thread, which has a lower priority for the moment, has started it. */
	started = simulated_npus[0].runs;
	k_thread_priority_set(k_current_get(), CONFIG_OPWEST_ETHOS_U_THREAD_PRIORITY - 1);
	CHECK("enqueue one", enqueue(NPU0, out[0], &hang), 0);
	CHECK("enqueue another", enqueue(NPU0, out[0], &slow), 0);
	CHECK("close before they start", opwest_accelerator_close(NPU0), 0);
	k_thread_priority_set(k_current_get(), priority);
	k_msleep(10);
	CHECK("they never do", (int)(simulated_npus[0].runs - started), 0);
	reopen();
}

static void ends(void)
{
	CHECK("close", opwest_accelerator_close(NPU0), 0);
	CHECK("close the other", opwest_accelerator_close(NPU1), 0);
	CHECK("deactivate", opwest_accelerator_deactivate(NPU0), 0);
	CHECK("deactivate the other", opwest_accelerator_deactivate(NPU1), 0);
	CHECK("no power", (int)opwest_ethos_u_driver(NPU0)->power_request_counter, 0);
	CHECK("no power for the other", (int)opwest_ethos_u_driver(NPU1)->power_request_counter, 0);
}

/* An NPU that cannot be reset may still write: it is not used until it is programmed again. */
static void stuck(void)
{
	CHECK("activate", opwest_accelerator_activate(NPU0), 0);
	CHECK("open", opwest_accelerator_open(NPU0, 0), 0);
	CHECK("hang", run(out[0], &hang, 10), -ETIMEDOUT);
	k_timer_stop(&simulated_time);
	simulated_npus[0].registers[STATUS] = 8; /* a reset that does not end */
	CHECK("close tells", opwest_accelerator_close(NPU0), -EIO);
	CHECK("open refuses", opwest_accelerator_open(NPU0, 0), -EIO);
	CHECK("deactivate", opwest_accelerator_deactivate(NPU0), 0);
	CHECK("activate refuses", opwest_accelerator_activate(NPU0), -EIO);
	simulated_npus[0].registers[STATUS] = 0;
	simulated_npus[0].registers[CMD] = 0;
	simulated_time_start();
	CHECK("activate after all", opwest_accelerator_activate(NPU0), 0);
	reopen();
	CHECK("close", opwest_accelerator_close(NPU0), 0);
	CHECK("deactivate", opwest_accelerator_deactivate(NPU0), 0);
}

/* npu0 has run-time power management. */
static void power(void)
{
	struct ethosu_driver *const driver = opwest_ethos_u_driver(NPU0);

	CHECK("suspended", (int)driver->power_request_counter, 0);
	CHECK("get", pm_device_runtime_get(NPU0), 0);
	CHECK("resumed", (int)driver->power_request_counter, 1);
	CHECK("activate", opwest_accelerator_activate(NPU0), 0);
	CHECK("once", (int)driver->power_request_counter, 1);
	CHECK("put, active", pm_device_runtime_put(NPU0), 0);
	CHECK("suspended, active", (int)driver->power_request_counter, 0);
	CHECK("open", opwest_accelerator_open(NPU0, 0), 0);
	CHECK("get, owned", pm_device_runtime_get(NPU0), 0);
	CHECK("run", run(out[0], &fast, 100), 0);
	CHECK("result", all(out[0], 1), true);
	CHECK("enqueue", enqueue(NPU0, out[0], &slow), 0);
	CHECK("put during work", pm_device_runtime_put(NPU0), -EBUSY);
	CHECK("close", opwest_accelerator_close(NPU0), 0);
	CHECK("put", pm_device_runtime_put(NPU0), 0);
	CHECK("deactivate", opwest_accelerator_deactivate(NPU0), 0);
	CHECK("off", (int)driver->power_request_counter, 0);
}

static void counters(void)
{
	static const uint16_t events[] = {ETHOSU_PMU_MAC_ACTIVE, ETHOSU_PMU_NPU_IDLE, ETHOSU_PMU_CYCLE,
					  ETHOSU_PMU_NPU_ACTIVE};
	static const uint16_t wrong[] = {0, 0, 0, ETHOSU_PMU_SENTINEL};
	struct opwest_device_measure measure;
	const char *shown;
	size_t size;

	CHECK("no such event", opwest_ethos_u_count_events(NPU1, wrong), -EINVAL);
	CHECK("other events", opwest_ethos_u_count_events(NPU1, events), 0);
	CHECK("reset", opwest_profile_device(NPU1, 0, &measure), -ENOENT);
	CHECK("no counters", opwest_profile_device(DEVICE_DT_GET(DT_NODELABEL(fake0)), 0, &measure), -ENOTSUP);
	CHECK("activate", opwest_accelerator_activate(NPU1), 0);
	CHECK("open", opwest_accelerator_open(NPU1, 0), 0);
	CHECK("slow", enqueue(NPU1, out[0], &slow), 0);
	CHECK("fast", enqueue(NPU1, out[0], &fast), 0);
	CHECK("busy", opwest_ethos_u_count_events(NPU1, events), -EBUSY);
	CHECK("fast again", enqueue(NPU1, out[0], &fast), 0);
	CHECK("fault", enqueue(NPU1, out[0], &fault), 0);
	CHECK("sync", opwest_accelerator_sync(NPU1, 0, 1000), -EIO);
	CHECK("close", opwest_accelerator_close(NPU1), 0);
	CHECK("deactivate", opwest_accelerator_deactivate(NPU1), 0);
	CHECK("first", opwest_profile_device(NPU1, 0, &measure), 0);
	CHECK("program", measure.program == &slow, true);
	CHECK("step", measure.step, 7);
	CHECK("jobs", (int)measure.cycles.runs, 1);
	CHECK("cycles", (int)measure.cycles.last, 50000);
	CHECK("MAC_ACTIVE", (int)measure.last[0], 48);
	CHECK("second", opwest_profile_device(NPU1, 1, &measure), 0);
	CHECK("jobs", (int)measure.cycles.runs, 2);
	CHECK("all cycles", (int)measure.cycles.total, 4000);
	CHECK("NPU_ACTIVE", (int)measure.total[3], 70);
	CHECK("no fault", opwest_profile_device(NPU1, 2, &measure), -ENOENT);
	shell_backend_dummy_clear_output(shell_backend_dummy_get_ptr());
	CHECK("shell", shell_execute_cmd(shell_backend_dummy_get_ptr(), "opwest profile"), 0);
	shown = shell_backend_dummy_get_output(shell_backend_dummy_get_ptr(), &size);
	printf("%s\n", shown);
	CHECK("forget", opwest_profile_device_reset(NPU1), 0);
	CHECK("forgotten", opwest_profile_device(NPU1, 0, &measure), -ENOENT);
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

/* A model on an NPU that reads as zero: its devices cannot be activated. */
static void activate_absent(void)
{
	static const struct opwest_device device = {
		.name = "npu2", .timeout_ms = 100, .flags = OPWEST_DEVICE_HOOKS};
	static const struct opwest_device_set set = {
		.model = "absent", .devices = &device, .count = 1};
	struct opwest_slot slot = {.dev = DEVICE_DT_GET(DT_NODELABEL(absent))};
	struct opwest_status status = OPWEST_STATUS_INIT;
	const int rc = opwest_devices_activate(&set, &slot, &status);

	printf("absent: activate %d, handle %d\n", rc, opwest_ethos_u_driver(slot.dev) != NULL);
}

int main(void)
{
	for (int i = 0; i < 16; i++) {
		in[i] = (uint8_t)(i * 3);
	}
	CHECK("ready", device_is_ready(NPU0) && device_is_ready(NPU1), true);
	CHECK("reserved", opwest_ethos_u_driver(NPU0)->reserved && opwest_ethos_u_driver(NPU1)->reserved, true);
	CHECK("each its own", (uintptr_t)opwest_ethos_u_driver(NPU0)->dev.reg == DT_REG_ADDR(DT_NODELABEL(fake0)) &&
		(uintptr_t)opwest_ethos_u_driver(NPU1)->dev.reg == DT_REG_ADDR(DT_NODELABEL(fake1)), true);
	programs();
	rights();
	inferences();
	second_npu();
	faults();
	aborts();
	ends();
	stuck();
	power();
	counters();
	k_thread_foreach(tell_stack, NULL);
	activate_absent();
	printf("done: %d checks, %d wrong\n", checks, failures);
	return 0;
}

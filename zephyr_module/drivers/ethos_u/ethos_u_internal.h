/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the driver: hooks and power (ethos_u.c), queue, payload, counters. */
#ifndef OPWEST_ETHOS_U_INTERNAL_H_
#define OPWEST_ETHOS_U_INTERNAL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zephyr/device.h>
#include <zephyr/kernel.h>

#include <ethosu_driver.h>

#include <opwest/accelerator.h>
#include <opwest/accelerator_context.h>
#include <opwest/ethos_u.h>
#ifdef CONFIG_OPWEST_ETHOS_U_PMU
#include <opwest/profile_devices.h>
#endif

/* One entry of the queue. */
struct ethos_u_job {
	const struct opwest_program *program;
	struct opwest_ethos_u_inference inference;
	uint16_t step;
};

#define ETHOS_U_CHECKED 8U

/* A checked program without a fault. The content of programs is constant. */
struct ethos_u_checked {
	const uint8_t *data;
	uint32_t size;
};

struct ethos_u_config {
	/* The device of Zephyr's driver, and its first register. */
	const struct device *npu;
	uintptr_t registers;
	/* The NPU's fast memory, 0 without one. */
	uintptr_t fast_memory;
	uint32_t fast_memory_size;
	unsigned int irq;
	k_thread_stack_t *stack;
	/* The longest wait of an operator for a full queue. */
	int32_t queue_timeout_ms;
	uint16_t queue_depth;
	struct ethos_u_job *queue;
};

struct ethos_u_data {
	struct opwest_accelerator_context context;
	struct ethosu_driver *driver;
	struct k_thread thread;
	/* The program that load() made the current one, may be NULL. Used by the owner's thread. */
	const struct opwest_program *program;

	/*
	 * Guards the members below. It is taken inside the lock of the context only where the
	 * device has no owner.
	 */
	struct k_mutex lock;
	/* Signals a new job. */
	struct k_condvar filled;
	/* Signals the end of the first job. */
	struct k_condvar removed;
	/* The queue is a ring. The first job stays in it while it runs. */
	uint16_t first;
	uint16_t count;
	/* The next jobs, which end without a start: after a failure, or aborted. */
	uint16_t skipped;
	/* The NPU was started with the first job. */
	bool running;
	/* That job must end early. */
	bool stopping;
	/* A job failed, and sync() has not returned the error. */
	bool failed;
	/* The device has an owner that can enqueue. */
	bool owned;
	/* A power request of the vendor's driver is open. */
	bool powered;
	/* The NPU could not be reset: it may still write. Its interrupt is off. */
	bool stuck;

	/* Of the running job: the vendor's driver keeps pointers to both. */
	uint64_t base[OPWEST_ETHOS_U_REGIONS];
	size_t base_size[OPWEST_ETHOS_U_REGIONS];

	/* A ring of the last checked programs: load() does not check them again. */
	struct k_spinlock checked_lock;
	struct ethos_u_checked checked[ETHOS_U_CHECKED];
	uint8_t checked_next;

#ifdef CONFIG_OPWEST_ETHOS_U_PMU
	/* The counts of the running job. */
	uint64_t cycles;
	uint32_t counts[OPWEST_PROFILE_EVENTS];
	uint16_t events[OPWEST_PROFILE_EVENTS];
	struct opwest_device_measure measures[CONFIG_OPWEST_ETHOS_U_PMU_PROGRAMS];
#endif
};

/* The function of the thread of a device. */
void ethos_u_work(void *p1, void *p2, void *p3);

/* End all jobs of the owner, who holds the lock. After the return the queue is empty. */
int ethos_u_abort(const struct device *dev);

/* Return the result of a wait; after the error of a job, later ones run again. */
int ethos_u_returned(struct ethos_u_data *data, int rc);

/* Reset the NPU and end the inference of the vendor's driver, if there is one; -EIO if it fails. */
int ethos_u_kill(const struct device *dev);

#ifdef CONFIG_OPWEST_ETHOS_U_PMU
/* Count the initial events. */
void ethos_u_pmu_init(struct ethos_u_data *data);
/* Start the counters, before an inference. Called with the lock. */
void ethos_u_pmu_begin(struct ethos_u_data *data);
/* Stop and read the counters, before the vendor's driver may reset the NPU. With the lock. */
void ethos_u_pmu_end(struct ethos_u_data *data);
/* Record what was read last. Called with the lock. */
void ethos_u_pmu_record(struct ethos_u_data *data, const struct ethos_u_job *job);
/* For struct opwest_measured_device. */
int ethos_u_pmu_read(const struct device *dev, uint32_t index,
		     struct opwest_device_measure *measure);
void ethos_u_pmu_reset(const struct device *dev);
#else
static inline void ethos_u_pmu_init(struct ethos_u_data *data)
{
	ARG_UNUSED(data);
}

static inline void ethos_u_pmu_begin(struct ethos_u_data *data)
{
	ARG_UNUSED(data);
}

static inline void ethos_u_pmu_end(struct ethos_u_data *data)
{
	ARG_UNUSED(data);
}

static inline void ethos_u_pmu_record(struct ethos_u_data *data, const struct ethos_u_job *job)
{
	ARG_UNUSED(data);
	ARG_UNUSED(job);
}
#endif

#endif /* OPWEST_ETHOS_U_INTERNAL_H_ */

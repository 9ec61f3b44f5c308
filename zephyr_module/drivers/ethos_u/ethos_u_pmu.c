/* SPDX-License-Identifier: Apache-2.0 */
/* The performance counters: CONFIG_OPWEST_ETHOS_U_PMU. */
#include <errno.h>
#include <string.h>

#include <zephyr/sys/util.h>

#include <pmu_ethosu.h>

#include "ethos_u_internal.h"

#define EVENTS OPWEST_PROFILE_EVENTS

#define ALL_COUNTERS (ETHOSU_PMU_CCNT_Msk | BIT_MASK(EVENTS))

BUILD_ASSERT(EVENTS <= ETHOSU_PMU_NCOUNTERS);

void ethos_u_pmu_init(struct ethos_u_data *data)
{
#ifdef ETHOSU85
	static const uint16_t initial[EVENTS] = {
		ETHOSU_PMU_NPU_ACTIVE,
		ETHOSU_PMU_MAC_ACTIVE,
		ETHOSU_PMU_SRAM_RD_DATA_BEAT_RECEIVED,
		ETHOSU_PMU_EXT_RD_DATA_BEAT_RECEIVED,
	};
#else
	static const uint16_t initial[EVENTS] = {
		ETHOSU_PMU_NPU_ACTIVE,
		ETHOSU_PMU_MAC_ACTIVE,
		ETHOSU_PMU_AXI0_RD_DATA_BEAT_RECEIVED,
		ETHOSU_PMU_AXI1_RD_DATA_BEAT_RECEIVED,
	};
#endif
	memcpy(data->events, initial, sizeof(initial));
}

void ethos_u_pmu_begin(struct ethos_u_data *data)
{
	struct ethosu_driver *const driver = data->driver;

	/* A reset, after a failure or without power, loses the configuration. */
	ETHOSU_PMU_Enable(driver);
	for (uint32_t i = 0; i < EVENTS; i++) {
		ETHOSU_PMU_Set_EVTYPER(driver, i, (enum ethosu_pmu_event_type)data->events[i]);
	}
	/* The thread may read the counter late: it stops by itself. */
	ETHOSU_PMU_PMCCNTR_CFG_Set_Start_Event(driver, ETHOSU_PMU_NPU_ACTIVE);
	ETHOSU_PMU_PMCCNTR_CFG_Set_Stop_Event(driver, ETHOSU_PMU_NPU_IDLE);
	ETHOSU_PMU_CYCCNT_Reset(driver);
	ETHOSU_PMU_EVCNTR_ALL_Reset(driver);
	ETHOSU_PMU_CNTR_Enable(driver, ALL_COUNTERS);
}

/* Returns the entry of a job: one that has it, or else a free one; NULL if all are in use. */
static struct opwest_device_measure *entry_of(struct ethos_u_data *data,
					      const struct ethos_u_job *job)
{
	for (size_t i = 0; i < ARRAY_SIZE(data->measures); i++) {
		struct opwest_device_measure *const entry = &data->measures[i];

		if (entry->program == NULL) {
			entry->program = job->program;
			entry->step = job->step;
			memcpy(entry->events, data->events, sizeof(entry->events));
		}
		if (entry->program == job->program && entry->step == job->step) {
			return entry;
		}
	}
	return NULL;
}

void ethos_u_pmu_end(struct ethos_u_data *data)
{
	struct ethosu_driver *const driver = data->driver;

	ETHOSU_PMU_CNTR_Disable(driver, ALL_COUNTERS);
	data->cycles = ETHOSU_PMU_Get_CCNTR(driver);
	for (uint32_t i = 0; i < EVENTS; i++) {
		data->counts[i] = ETHOSU_PMU_Get_EVCNTR(driver, i);
	}
	ETHOSU_PMU_Disable(driver);
}

void ethos_u_pmu_record(struct ethos_u_data *data, const struct ethos_u_job *job)
{
	struct opwest_device_measure *const entry = entry_of(data, job);

	if (entry == NULL) {
		return;
	}
	for (uint32_t i = 0; i < EVENTS; i++) {
		entry->last[i] = data->counts[i];
		entry->total[i] += entry->cycles.runs != UINT32_MAX ? data->counts[i] : 0U;
	}
	opwest_measure_add(&entry->cycles, data->cycles);
}

int ethos_u_pmu_read(const struct device *dev, uint32_t index,
		     struct opwest_device_measure *measure)
{
	struct ethos_u_data *const data = dev->data;
	int rc = -ENOENT;

	(void)k_mutex_lock(&data->lock, K_FOREVER);
	if (index < ARRAY_SIZE(data->measures) && data->measures[index].program != NULL) {
		*measure = data->measures[index];
		rc = 0;
	}
	k_mutex_unlock(&data->lock);
	return rc;
}

void ethos_u_pmu_reset(const struct device *dev)
{
	struct ethos_u_data *const data = dev->data;

	(void)k_mutex_lock(&data->lock, K_FOREVER);
	memset(data->measures, 0, sizeof(data->measures));
	k_mutex_unlock(&data->lock);
}

int opwest_ethos_u_count_events(const struct device *dev,
				const uint16_t events[OPWEST_PROFILE_EVENTS])
{
	struct ethos_u_data *const data = dev->data;
	int rc = 0;

	for (uint32_t i = 0; i < EVENTS; i++) {
		if (events[i] >= ETHOSU_PMU_SENTINEL) {
			return -EINVAL;
		}
	}
	(void)k_mutex_lock(&data->lock, K_FOREVER);
	if (data->running) {
		rc = -EBUSY;
	} else {
		memcpy(data->events, events, sizeof(data->events));
		memset(data->measures, 0, sizeof(data->measures));
	}
	k_mutex_unlock(&data->lock);
	return rc;
}

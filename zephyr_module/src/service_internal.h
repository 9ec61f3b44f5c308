/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief What the shell and the MCUmgr group share: the models of this image and the thread that
 * runs them.
 */
#ifndef OPWEST_SERVICE_INTERNAL_H_
#define OPWEST_SERVICE_INTERNAL_H_

#include <stdbool.h>
#include <stdint.h>

#include <opwest/service.h>

/** What can be asked of a model. */
enum opwest_service_action {
	OPWEST_SERVICE_OPEN = 0,
	OPWEST_SERVICE_RUN = 1,
	OPWEST_SERVICE_CLOSE = 2,
	OPWEST_SERVICE_ACTIONS = 3,
};

/** What came of it. */
struct opwest_service_report {
	/** 0 or a negative errno. */
	int result;
	/** The name of that errno, or "". */
	const char *error;
	/** What the operator or the hook returned that failed first; 0 where none did. */
	int32_t code;
	/** The hook that failed, "" for none and for an operator. */
	const char *hook;
	/** The device of that hook, or "". */
	const char *device;
	/** The operator of the step that failed, or "". */
	const char *operator_name;
	/** That step, or -1. */
	int32_t step;
	/** How long it took. */
	uint64_t nanoseconds;
};

/** @brief Keep other hosts out: around everything below, opwest_service_read() and _write(). */
void opwest_service_lock(void);

/** @brief Let other hosts in again. */
void opwest_service_unlock(void);

/**
 * @brief Return a model of this image.
 *
 * @param index The model, counted from 0.
 *
 * @return The model, or NULL if there is none of that number
 */
const struct opwest_served_model *opwest_service_model(uint32_t index);

/**
 * @brief Count the models of this image.
 *
 * @return How many there are
 */
uint32_t opwest_service_model_count(void);

/**
 * @brief Open, run or close a model, on a thread with the stack that operators may need, and wait
 * for it.
 *
 * @param served The model.
 * @param action What to do.
 * @param report Where it goes what came of it.
 */
void opwest_service_do(const struct opwest_served_model *served, enum opwest_service_action action,
		       struct opwest_service_report *report);

/**
 * @brief Tell how much of the stack of that thread was ever used.
 *
 * @param used Where the bytes go that were.
 * @param size Where the size of the stack goes, bytes.
 *
 * @retval true  Told.
 * @retval false It is not known: CONFIG_INIT_STACKS or CONFIG_THREAD_STACK_INFO is off, or threads
 *               have stacks of the host's.
 */
bool opwest_service_stack(uint32_t *used, uint32_t *size);

#endif /* OPWEST_SERVICE_INTERNAL_H_ */

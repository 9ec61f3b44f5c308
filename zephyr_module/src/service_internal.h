/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief Shared by shell and MCUmgr group: the models of this image and their thread.
 */
#ifndef OPWEST_SERVICE_INTERNAL_H_
#define OPWEST_SERVICE_INTERNAL_H_

#include <stdbool.h>
#include <stdint.h>

#include <opwest/service.h>

/** The actions on a model. */
enum opwest_service_action {
	OPWEST_SERVICE_OPEN = 0,
	OPWEST_SERVICE_RUN = 1,
	OPWEST_SERVICE_CLOSE = 2,
	OPWEST_SERVICE_ACTIONS = 3,
	/** An action of opwest_service_do_call() only. */
	OPWEST_SERVICE_CALL = 3,
};

/** The result of an action. */
struct opwest_service_report {
	/** 0 or a negative errno. */
	int result;
	/** The name of that errno, or "". */
	const char *error;
	/** The return value of the first operator or hook that failed; 0 if none did. */
	int32_t code;
	/** The hook that failed, "" for none and for an operator. */
	const char *hook;
	/** The device of that hook, or "". */
	const char *device;
	/** The operator of the step that failed, or "". */
	const char *operator_name;
	/** That step, or -1. */
	int32_t step;
	/** The time that it took. */
	uint64_t nanoseconds;
#ifdef CONFIG_OPWEST_CHECK_STEPS
	/** Whether the run has stopped at a point: it is not complete. */
	bool stopped;
#endif
};

/** @brief Lock out other hosts, for all functions below, opwest_service_read() and _write(). */
void opwest_service_lock(void);

/** @brief Release the lock. */
void opwest_service_unlock(void);

/**
 * @brief Return a model of this image.
 *
 * @param index The index, from 0.
 *
 * @return The model, or NULL if there is no such index
 */
const struct opwest_served_model *opwest_service_model(uint32_t index);

/**
 * @brief Count the models of this image.
 *
 * @return Their number
 */
uint32_t opwest_service_model_count(void);

/**
 * @brief Open, run or close a model on the service's thread, and wait for it.
 *
 * @param served The model.
 * @param action The action.
 * @param report Set to the result.
 */
void opwest_service_do(const struct opwest_served_model *served, enum opwest_service_action action,
		       struct opwest_service_report *report);

#ifdef CONFIG_OPWEST_CHECK_STEPS
/**
 * @brief Run a model until a point ends, and wait for that.
 *
 * Starts a run, or continues the one that has stopped. opwest_service_do() completes such a run
 * first.
 *
 * @param served The model.
 * @param point  The point; 0 for the end of the run.
 * @param report Set to the result. Without @ref opwest_service_report.stopped the run is complete.
 */
void opwest_service_run_until(const struct opwest_served_model *served, uint32_t point,
			      struct opwest_service_report *report);
#endif

#ifdef CONFIG_OPWEST_SERVICE_CALL
/**
 * @brief Call an operator on the service's thread, and wait for it.
 *
 * @param served The model.
 * @param index  The operator.
 * @param device The index of its device, or OPWEST_NO_DEVICE.
 * @param report Set to the result.
 */
void opwest_service_do_call(const struct opwest_served_model *served, uint32_t index,
			    uint32_t device, struct opwest_service_report *report);
#endif

/**
 * @brief Return the largest stack use of the service's thread.
 *
 * @param used Set to the used bytes.
 * @param size Set to the size of the stack, bytes.
 *
 * @retval true  Both are set.
 * @retval false It is not known: CONFIG_INIT_STACKS or CONFIG_THREAD_STACK_INFO is off, or threads
 *               use stacks of the host.
 */
bool opwest_service_stack(uint32_t *used, uint32_t *size);

#endif /* OPWEST_SERVICE_INTERNAL_H_ */

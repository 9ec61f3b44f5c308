/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The jobs of hosts: how each is executed, and the fields of its response.
 */
#ifndef OPWEST_BUNDLE_JOBS_INTERNAL_H_
#define OPWEST_BUNDLE_JOBS_INTERNAL_H_

#include <stdint.h>

#include <opwest/bundle_service.h>

#include "service_internal.h"

/** What a job found; each kind of job has its own members. */
struct opwest_bundle_findings {
	/** STATE */
	struct opwest_bundle_record record;
	/** LIST */
	struct opwest_bundle_info info;
	/** INSTALL, ROLL_BACK */
	struct opwest_bundle_verdict verdict;
	/** STEPS, PART */
	struct opwest_bundle_difference difference;
	/** Copies: the names of the difference are in a slot that a later upload erases. */
	char operator_name[OPWEST_BUNDLE_NAME_SIZE];
	char tensor[OPWEST_BUNDLE_NAME_SIZE];
	/** BEGIN */
	uint32_t offset;
	uint8_t slot;
};

/**
 * @brief Execute a job.
 *
 * @param bundles  The manager.
 * @param request  The job and its arguments, without those of the data.
 * @param data     PART: @p request->data_size bytes.
 * @param findings Receives what the job found.
 *
 * @return The result of the manager's function; -EALREADY: ROLL_BACK for a slot that does not hold
 *         the current model.
 */
int opwest_bundle_execute(struct opwest_bundles *bundles,
			  const struct opwest_bundle_request *request, const uint8_t *data,
			  struct opwest_bundle_findings *findings);

/**
 * @brief Put the fields that describe what a job found.
 *
 * @param sink     Receives the fields.
 * @param job      enum opwest_bundle_job
 * @param result   Its result.
 * @param findings What it found.
 */
void opwest_bundle_put_findings(const struct opwest_bundle_sink *sink, uint32_t job, int result,
				const struct opwest_bundle_findings *findings);

#endif /* OPWEST_BUNDLE_JOBS_INTERNAL_H_ */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions, and the switch of the model below them.
 *
 * `lock` protects the counters. While `switching` is set, no run begins; when `running` is 0, too,
 * the thread of the installation accesses the current model and all sessions alone. Each waiting
 * thread has incremented `waiting` or finds a count of `resumed`: a thread that takes the count of
 * another one waits again, so the sums remain equal.
 *
 * A function of a session sets its mark `running`: two threads cannot use one workspace. The image
 * has no check of its own.
 */
#include <errno.h>
#include <string.h>

#include "bundle_internal.h"

static bool begin(struct opwest_session *session)
{
	return opwest_port_take(&session->running);
}

static int end(struct opwest_session *session, int rc)
{
	opwest_port_give(&session->running);
	return rc;
}

static int enter(struct opwest_bundles *bundles)
{
	int rc = 0;

	opwest_port_mutex_lock(&bundles->lock);
	while (bundles->switching) {
		bundles->waiting++;
		opwest_port_mutex_unlock(&bundles->lock);
		(void)opwest_port_sem_take(&bundles->resumed, -1);
		opwest_port_mutex_lock(&bundles->lock);
	}
	if (bundles->current == NULL) {
		rc = -ENOENT;
	} else {
		bundles->running++;
	}
	opwest_port_mutex_unlock(&bundles->lock);
	return rc;
}

static void leave(struct opwest_bundles *bundles)
{
	opwest_port_mutex_lock(&bundles->lock);
	bundles->running--;
	if (bundles->running == 0U && bundles->switching) {
		opwest_port_sem_give(&bundles->drained);
	}
	opwest_port_mutex_unlock(&bundles->lock);
}

void opwest_bundle_drain(struct opwest_bundles *bundles)
{
	opwest_port_mutex_lock(&bundles->lock);
	bundles->switching = true;
	while (bundles->running > 0U) {
		opwest_port_mutex_unlock(&bundles->lock);
		(void)opwest_port_sem_take(&bundles->drained, -1);
		opwest_port_mutex_lock(&bundles->lock);
	}
	opwest_port_mutex_unlock(&bundles->lock);
}

void opwest_bundle_resume(struct opwest_bundles *bundles)
{
	uint32_t waiting;

	opwest_port_mutex_lock(&bundles->lock);
	bundles->switching = false;
	waiting = bundles->waiting;
	bundles->waiting = 0U;
	opwest_port_mutex_unlock(&bundles->lock);
	for (; waiting > 0U; waiting--) {
		opwest_port_sem_give(&bundles->resumed);
	}
}

void opwest_bundle_close_session(struct opwest_session *session)
{
	const struct opwest_bundles *const bundles = session->bundles;

	if (session->generation != 0U) {
		(void)bundles->current->close(session->workspace, session->devices);
		session->generation = 0U;
	}
}

void opwest_bundle_publish(struct opwest_bundles *bundles, uint8_t slot,
			   const struct opwest_bundle_header *header,
			   const struct opwest_bundle_descriptor *descriptor)
{
	struct opwest_session *session;

	for (session = bundles->sessions; session != NULL; session = session->next) {
		opwest_bundle_close_session(session);
	}
	if (bundles->current != NULL) {
		opwest_bundle_unload(bundles, bundles->slot, &bundles->header);
	}
	opwest_port_mutex_lock(&bundles->lock);
	bundles->slot = slot;
	bundles->current = descriptor;
	if (header != NULL) {
		bundles->header = *header;
	}
	bundles->generation++;
	if (bundles->generation == 0U) { /* 0: a closed session */
		bundles->generation = 1U;
	}
	opwest_port_mutex_unlock(&bundles->lock);
}

int opwest_session_add(struct opwest_bundles *bundles, struct opwest_session *session)
{
	struct opwest_bundle_placement placement;
	struct opwest_bundle_verdict verdict;
	struct opwest_session **last = &bundles->sessions;
	int rc = 0;

	if (!bundles->started) {
		*session = (struct opwest_session){.memory = session->memory};
		return -EPERM;
	}
	opwest_port_mutex_lock(&bundles->installation);
	while (*last != NULL && *last != session) {
		last = &(*last)->next;
	}
	if (*last == NULL && bundles->current != NULL &&
	    !opwest_bundle_place(&session->memory, bundles->current, false, &placement, &verdict)) {
		*session = (struct opwest_session){.memory = session->memory};
		rc = -ENOMEM;
	} else if (*last == NULL) {
		*session = (struct opwest_session){
			.memory = session->memory,
			.bundles = bundles,
		};
		*last = session;
	}
	opwest_port_mutex_unlock(&bundles->installation);
	return rc;
}

static void keep_status(struct opwest_session *session)
{
	const struct opwest_status *const status =
		session->bundles->current->status(session->workspace);

	if (status != NULL) {
		session->status = *status;
		session->has_status = true;
	}
}

/* Open the workspace of a session for the current model, unless it is open. */
static int open_session(struct opwest_session *session)
{
	const struct opwest_bundles *const bundles = session->bundles;
	const struct opwest_bundle_descriptor *const current = bundles->current;
	struct opwest_bundle_placement placement;
	struct opwest_bundle_verdict verdict;
	int rc;

	if (session->generation == bundles->generation) {
		return 0;
	}
	if (!opwest_bundle_place(&session->memory, current, false, &placement, &verdict)) {
		return -ENOMEM;
	}
	if (!opwest_bundle_assign(bundles->config, current->details->model, session->devices,
				  &verdict)) {
		return -ENODEV;
	}
	session->workspace = placement.workspace;
	current->prepare(placement.workspace, placement.pools);
	rc = current->open(placement.workspace, session->devices, bundles->config->host);
	if (rc == 0) {
		session->generation = bundles->generation;
	} else {
		keep_status(session);
	}
	return rc;
}

static int run(struct opwest_session *session, const void *const *inputs, void *const *outputs)
{
	const struct opwest_bundles *const bundles = session->bundles;
	const struct opwest_bundle_descriptor *const current = bundles->current;
	const struct opwest_model *const model = current->details->model;
	int rc;

	if ((inputs == NULL && model->input_count > 0U) ||
	    (outputs == NULL && model->output_count > 0U)) {
		return -EINVAL;
	}
	rc = current->run(inputs, outputs, session->workspace, session->devices);
	if (rc == -EPERM) { /* a device that was lost in the latest run closed the workspace */
		const int opened =
			current->open(session->workspace, session->devices, bundles->config->host);

		if (opened == 0) {
			rc = current->run(inputs, outputs, session->workspace, session->devices);
		} else if (opened != -EALREADY) {
			rc = opened;
		}
	}
	keep_status(session);
	return rc;
}

static int run_once(struct opwest_session *session, uint64_t interface_hash,
		    const void *const *inputs, void *const *outputs)
{
	struct opwest_bundles *const bundles = session->bundles;
	int rc;

	if (bundles == NULL) {
		return -EPERM; /* not added */
	}
	if (session->held) {
		return -EBUSY;
	}
	rc = enter(bundles);
	if (rc != 0) {
		return rc;
	}
	if (bundles->header.interface_hash != interface_hash) {
		rc = -EPROTOTYPE;
	} else {
		rc = open_session(session);
	}
	if (rc == 0) {
		rc = run(session, inputs, outputs);
	}
	leave(bundles);
	return rc;
}

static int hold(struct opwest_session *session, const struct opwest_bundle_descriptor **descriptor,
		const struct opwest_bundle_header **header)
{
	struct opwest_bundles *const bundles = session->bundles;
	int rc;

	if (bundles == NULL) {
		return -EPERM; /* not added */
	}
	if (session->held) {
		return -EBUSY;
	}
	rc = enter(bundles);
	if (rc != 0) {
		return rc;
	}
	rc = open_session(session);
	if (rc != 0) {
		leave(bundles);
		return rc;
	}
	session->held = true;
	*descriptor = bundles->current;
	if (header != NULL) {
		*header = &bundles->header;
	}
	return 0;
}

int opwest_session_run(struct opwest_session *session, uint64_t interface_hash,
		       const void *const *inputs, void *const *outputs)
{
	return begin(session) ? end(session, run_once(session, interface_hash, inputs, outputs))
			      : -EBUSY;
}

int opwest_session_hold(struct opwest_session *session,
			const struct opwest_bundle_descriptor **descriptor,
			const struct opwest_bundle_header **header)
{
	return begin(session) ? end(session, hold(session, descriptor, header)) : -EBUSY;
}

int opwest_session_run_held(struct opwest_session *session, const void *const *inputs,
			    void *const *outputs)
{
	if (!begin(session)) {
		return -EBUSY;
	}
	return end(session, session->held ? run(session, inputs, outputs) : -EPERM);
}

void opwest_session_release(struct opwest_session *session)
{
	if (session->held) {
		session->held = false;
		leave(session->bundles);
	}
}

static int reset(struct opwest_session *session)
{
	struct opwest_bundles *const bundles = session->bundles;
	int rc = bundles == NULL ? -EPERM : session->held ? 0 : enter(bundles);

	if (rc != 0) {
		return rc;
	}
	rc = open_session(session);
	if (rc == 0 && bundles->current->reset != NULL) {
		rc = bundles->current->reset(session->workspace);
	}
	if (!session->held) {
		leave(bundles);
	}
	return rc;
}

int opwest_session_reset(struct opwest_session *session)
{
	return begin(session) ? end(session, reset(session)) : -EBUSY;
}

int opwest_session_status(struct opwest_session *session, struct opwest_status *status)
{
	int rc = -EPERM;

	if (!begin(session)) {
		return -EBUSY;
	}
	if (session->has_status) {
		*status = session->status;
		rc = 0;
	}
	return end(session, rc);
}

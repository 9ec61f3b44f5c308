/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stddef.h>

#include <opwest/accelerator_context.h>

void opwest_accelerator_context_init(struct opwest_accelerator_context *context)
{
	opwest_port_mutex_init(&context->lock);
	opwest_port_owner_init(&context->owner);
	opwest_port_spin_init(&context->spin);
	opwest_port_sem_init(&context->changed, 0, 1);
	context->program = NULL;
	context->activations = 0;
	context->owned = false;
	context->enqueued = 0;
	context->ended = 0;
	context->error = 0;
	context->woken = false;
	context->callback = NULL;
	context->user = NULL;
}

int opwest_accelerator_context_activate(struct opwest_accelerator_context *context,
					const struct device *dev, opwest_accelerator_power_t start)
{
	int rc = 0;

	opwest_port_mutex_lock(&context->lock);
	if (context->activations == 0 && start != NULL) {
		rc = start(dev);
	}
	if (rc == 0) {
		context->activations++;
	}
	opwest_port_mutex_unlock(&context->lock);
	return rc;
}

int opwest_accelerator_context_deactivate(struct opwest_accelerator_context *context,
					  const struct device *dev, opwest_accelerator_power_t stop)
{
	int rc = 0;

	opwest_port_mutex_lock(&context->lock);
	if (context->activations == 0) {
		rc = -EPERM;
	} else {
		if (context->activations == 1) {
			rc = stop == NULL ? 0 : stop(dev);
			context->program = NULL;
		}
		context->activations--;
	}
	opwest_port_mutex_unlock(&context->lock);
	return rc;
}

static bool is_active(struct opwest_accelerator_context *context)
{
	bool active;

	opwest_port_mutex_lock(&context->lock);
	active = context->activations > 0;
	opwest_port_mutex_unlock(&context->lock);
	return active;
}

/* Begins or ends an ownership: the counts of jobs are its own. */
static void set_owned(struct opwest_accelerator_context *context, bool owned)
{
	opwest_port_spin_lock(&context->spin);
	context->owned = owned;
	context->enqueued = 0;
	context->ended = 0;
	context->error = 0;
	context->callback = NULL;
	context->user = NULL;
	opwest_port_spin_unlock(&context->spin);
}

int opwest_accelerator_context_open(struct opwest_accelerator_context *context, int32_t timeout_ms)
{
	int rc;

	if (!is_active(context)) {
		return -EPERM;
	}
	rc = opwest_port_owner_take(&context->owner, timeout_ms);
	if (rc != 0) {
		return rc;
	}
	/* The device may have been deactivated during the wait. */
	if (!is_active(context)) {
		(void)opwest_port_owner_give(&context->owner);
		return -EPERM;
	}
	set_owned(context, true);
	return 0;
}

static bool is_owned(struct opwest_accelerator_context *context)
{
	bool owned;

	opwest_port_spin_lock(&context->spin);
	owned = context->owned;
	opwest_port_spin_unlock(&context->spin);
	return owned;
}

bool opwest_accelerator_context_is_mine(struct opwest_accelerator_context *context)
{
	return is_owned(context) && opwest_port_owner_is_mine(&context->owner);
}

int opwest_accelerator_context_close(struct opwest_accelerator_context *context)
{
	if (!opwest_accelerator_context_is_mine(context)) {
		return -EPERM;
	}
	set_owned(context, false);
	return opwest_port_owner_give(&context->owner);
}

int opwest_accelerator_context_load(struct opwest_accelerator_context *context,
				    const struct device *dev, const struct opwest_program *program,
				    enum opwest_switching switching, opwest_accelerator_load_t load)
{
	const bool is_idle = opwest_accelerator_context_unfinished(context) == 0U;
	int rc = 0;

	if (!is_owned(context)) {
		return -EPERM;
	}
	opwest_port_mutex_lock(&context->lock);
	if (!opwest_program_equal(context->program, program)) {
		if ((switching != OPWEST_SWITCH_FREE && !is_idle) ||
		    (switching == OPWEST_SWITCH_EXCLUSIVE && context->program != NULL &&
		     context->activations > 1)) {
			rc = -EBUSY;
		} else {
			rc = load == NULL ? 0 : load(dev, program);
			context->program = rc == 0 ? program : NULL;
		}
	}
	opwest_port_mutex_unlock(&context->lock);
	return rc;
}

void opwest_accelerator_context_forget(struct opwest_accelerator_context *context)
{
	opwest_port_mutex_lock(&context->lock);
	context->program = NULL;
	opwest_port_mutex_unlock(&context->lock);
}

int opwest_accelerator_context_begin(struct opwest_accelerator_context *context)
{
	int rc = -EPERM;

	opwest_port_spin_lock(&context->spin);
	if (context->owned) {
		context->enqueued++;
		rc = 0;
	}
	opwest_port_spin_unlock(&context->spin);
	return rc;
}

void opwest_accelerator_context_end(struct opwest_accelerator_context *context,
				    const struct device *dev, int error)
{
	opwest_accelerator_callback_t callback;
	void *user;

	opwest_port_spin_lock(&context->spin);
	if (context->ended == context->enqueued) {
		opwest_port_spin_unlock(&context->spin);
		return;
	}
	context->ended++;
	if (context->error == 0) {
		context->error = error;
	}
	callback = context->callback;
	user = context->user;
	opwest_port_spin_unlock(&context->spin);
	opwest_port_sem_give(&context->changed);
	if (callback != NULL) {
		callback(dev, user);
	}
}

uint32_t opwest_accelerator_context_enqueued(struct opwest_accelerator_context *context)
{
	uint32_t enqueued;

	opwest_port_spin_lock(&context->spin);
	enqueued = context->enqueued;
	opwest_port_spin_unlock(&context->spin);
	return enqueued;
}

uint32_t opwest_accelerator_context_unfinished(struct opwest_accelerator_context *context)
{
	uint32_t unfinished;

	opwest_port_spin_lock(&context->spin);
	unfinished = context->enqueued - context->ended;
	opwest_port_spin_unlock(&context->spin);
	return unfinished;
}

/* Returns whether the wait is over, with its result. */
static bool is_over(struct opwest_accelerator_context *context, uint32_t leave, bool wakes, int *rc)
{
	bool over = true;

	opwest_port_spin_lock(&context->spin);
	if (context->enqueued - context->ended <= leave) {
		*rc = context->error;
		context->error = 0;
	} else if (wakes && context->woken) {
		*rc = -EINTR;
		context->woken = false;
	} else {
		over = false;
	}
	opwest_port_spin_unlock(&context->spin);
	return over;
}

static int wait_until(struct opwest_accelerator_context *context, uint32_t leave, bool wakes,
		      int32_t timeout_ms)
{
	const int64_t deadline = opwest_port_deadline(timeout_ms);
	int rc = 0;

	if (!is_owned(context)) {
		return -EPERM;
	}
	for (int waited = 0; !is_over(context, leave, wakes, &rc);) {
		if (timeout_ms == 0) {
			return -EAGAIN;
		}
		if (waited != 0) {
			return -ETIMEDOUT;
		}
		waited = opwest_port_sem_take_until(&context->changed, deadline);
	}
	return rc;
}

int opwest_accelerator_context_sync(struct opwest_accelerator_context *context, uint32_t leave,
				    int32_t timeout_ms)
{
	return wait_until(context, leave, true, timeout_ms);
}

int opwest_accelerator_context_drain(struct opwest_accelerator_context *context, int32_t timeout_ms)
{
	return wait_until(context, 0U, false, timeout_ms);
}

void opwest_accelerator_context_wake(struct opwest_accelerator_context *context)
{
	opwest_port_spin_lock(&context->spin);
	context->woken = true;
	opwest_port_spin_unlock(&context->spin);
	opwest_port_sem_give(&context->changed);
}

int opwest_accelerator_context_notify(struct opwest_accelerator_context *context,
				      opwest_accelerator_callback_t callback, void *user)
{
	if (!is_owned(context)) {
		return -EPERM;
	}
	opwest_port_spin_lock(&context->spin);
	context->callback = callback;
	context->user = user;
	opwest_port_spin_unlock(&context->spin);
	return 0;
}

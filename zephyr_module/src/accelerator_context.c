/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stddef.h>

#include <opwest/accelerator_context.h>

void opwest_accelerator_context_init(struct opwest_accelerator_context *context)
{
	opwest_port_mutex_init(&context->lock);
	opwest_port_sem_init(&context->owner, 1, 1);
	context->program = NULL;
	context->activations = 0;
	context->owned = false;
}

int opwest_accelerator_context_activate(struct opwest_accelerator_context *context,
					const struct device *dev,
					const struct opwest_program *program,
					opwest_accelerator_load_t load)
{
	int rc = 0;

	opwest_port_mutex_lock(&context->lock);
	if (context->activations > 0) {
		rc = opwest_program_equal(context->program, program) ? 0 : -EBUSY;
	} else if (load != NULL) {
		rc = load(dev, program);
	}
	if (rc == 0) {
		if (context->activations == 0) {
			context->program = program;
		}
		context->activations++;
	}
	opwest_port_mutex_unlock(&context->lock);
	return rc;
}

static bool is_active(struct opwest_accelerator_context *context, bool own)
{
	bool active;

	opwest_port_mutex_lock(&context->lock);
	active = context->activations > 0;
	if (active && own) {
		context->owned = true;
	}
	opwest_port_mutex_unlock(&context->lock);
	return active;
}

int opwest_accelerator_context_open(struct opwest_accelerator_context *context, int32_t timeout_ms)
{
	if (!is_active(context, false)) {
		return -EPERM;
	}
	if (opwest_port_sem_take(&context->owner, timeout_ms) != 0) {
		return -ETIMEDOUT;
	}
	/* The device may have been deactivated during the wait. */
	if (!is_active(context, true)) {
		opwest_port_sem_give(&context->owner);
		return -EPERM;
	}
	return 0;
}

int opwest_accelerator_context_close(struct opwest_accelerator_context *context)
{
	bool owned;

	opwest_port_mutex_lock(&context->lock);
	owned = context->owned;
	context->owned = false;
	opwest_port_mutex_unlock(&context->lock);
	if (!owned) {
		return -EPERM;
	}
	opwest_port_sem_give(&context->owner);
	return 0;
}

int opwest_accelerator_context_deactivate(struct opwest_accelerator_context *context,
					  const struct device *dev,
					  opwest_accelerator_unload_t unload)
{
	int rc = 0;

	opwest_port_mutex_lock(&context->lock);
	if (context->activations == 0) {
		rc = -EPERM;
	} else {
		if (context->activations == 1) {
			rc = unload == NULL ? 0 : unload(dev);
			context->program = NULL;
		}
		context->activations--;
	}
	opwest_port_mutex_unlock(&context->lock);
	return rc;
}

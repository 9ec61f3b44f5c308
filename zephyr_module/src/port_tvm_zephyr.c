/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <string.h>

#include <zephyr/kernel.h>
#include <zephyr/logging/log.h>

#include <opwest/tvm_workspace.h>

LOG_MODULE_DECLARE(opwest, CONFIG_OPWEST_LOG_LEVEL);

/* The records of all threads that run operators now. */
static struct opwest_tvm_workspace *notes;
static struct k_spinlock lock;

void opwest_port_tvm_push(struct opwest_tvm_workspace *workspace)
{
	workspace->thread = k_current_get();

	const k_spinlock_key_t key = k_spin_lock(&lock);

	workspace->next = notes;
	notes = workspace;
	k_spin_unlock(&lock, key);
}

void opwest_port_tvm_pop(struct opwest_tvm_workspace *workspace)
{
	const k_spinlock_key_t key = k_spin_lock(&lock);

	for (struct opwest_tvm_workspace **at = &notes; *at != NULL; at = &(*at)->next) {
		if (*at == workspace) {
			*at = workspace->next;
			break;
		}
	}
	k_spin_unlock(&lock, key);
}

struct opwest_tvm_workspace *opwest_port_tvm_current(void)
{
	const void *const thread = k_current_get();
	const k_spinlock_key_t key = k_spin_lock(&lock);
	struct opwest_tvm_workspace *found = notes;

	while (found != NULL && found->thread != thread) {
		found = found->next;
	}
	k_spin_unlock(&lock, key);
	return found;
}

void opwest_port_tvm_log(const char *kind, const char *const *parts, int32_t count)
{
	/* One line of the log; longer text is truncated. */
	char text[192];
	size_t used = 0;

	for (int32_t i = 0; i < count; i++) {
		const char *c = parts[i];

		for (; c != NULL && *c != '\0' && used < sizeof(text) - 1; c++) {
			text[used++] = *c;
		}
	}
	text[used] = '\0';
	LOG_ERR("operator: %s%s%s", kind != NULL ? kind : "", kind != NULL ? ": " : "", text);
}

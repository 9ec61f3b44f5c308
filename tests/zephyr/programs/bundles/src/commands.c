/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <zephyr/kernel.h>

#include "bundles.h"

#define MAX_WORDS  8U
#define MAX_OUTPUT 1024U
#define FILL_RECORD 100U

/* No stack: outputs of models. */
static uint8_t output[MAX_OUTPUT] __aligned(8);

int upload(uint32_t part, uint32_t chunk, uint32_t until)
{
	/* Not of the interface: the vendored implementation of this image. */
	extern bool opwest_bundle_sha512(const uint8_t *data, size_t size, uint8_t *digest);
	uint8_t digest[OPWEST_BUNDLE_DIGEST_SIZE];
	uint32_t size;
	uint32_t offset;
	const uint8_t *const data = part_of(part, &size);
	int rc;

	if (!opwest_bundle_sha512(data, size, digest)) {
		return -EIO;
	}
	rc = opwest_bundles_begin(&bundles, OPWEST_BUNDLE_NO_SLOT, size, digest, &offset);
	while (rc == 0 && offset < MIN(size, until)) {
		rc = opwest_bundles_write(&bundles, offset, data + offset,
					  MIN(chunk, size - offset), &offset);
	}
	return rc;
}

int install(uint32_t part, uint32_t chunk, struct opwest_bundle_verdict *verdict)
{
	const int rc = upload(part, chunk, UINT32_MAX);

	memset(verdict, 0, sizeof(*verdict));
	return rc != 0 ? rc : opwest_bundles_install(&bundles, verdict);
}

int run_cases(const struct cases *cases, uint32_t first, uint32_t count)
{
	const struct opwest_bundle_descriptor *descriptor;
	int equal = 0;
	int rc = opwest_session_hold(&sessions[0], &descriptor, NULL);

	for (uint32_t i = first; rc == 0 && i < first + count; i++) {
		const void *const inputs[] = {input_of(cases, i)};
		void *const outputs[] = {output};

		memset(output, 0xa5, sizeof(output));
		rc = opwest_session_run_held(&sessions[0], inputs, outputs);
		if (memcmp(output, output_of(cases, i), cases->output_size) == 0) {
			equal++;
		}
	}
	opwest_session_release(&sessions[0]);
	return rc != 0 ? rc : equal;
}

static void print_model(void)
{
	const struct opwest_bundle_descriptor *descriptor;
	const struct opwest_bundle_header *header;

	if (opwest_session_hold(&sessions[0], &descriptor, &header) != 0) {
		printk("model: none\n");
		return;
	}
	printk("model: %s %u.%u.%u at %p\n", header->name, header->version >> 24,
	       (header->version >> 16) & 0xffU, header->version & 0xffffU,
	       (const void *)descriptor);
	opwest_session_release(&sessions[0]);
}

static void print_verdict(const char *name, int rc, const struct opwest_bundle_verdict *verdict)
{
	const char *const fault = opwest_bundle_fault_name(verdict->fault);

	printk("%s: %d %s detail %d found %llx expected %llx\n", name, rc,
	       fault != NULL ? fault : "?", verdict->detail, (unsigned long long)verdict->found,
	       (unsigned long long)verdict->expected);
}

static void print_list(void)
{
	for (uint8_t i = 0U; i < config.storage->slot_count; i++) {
		struct opwest_bundle_info info;
		const int rc = opwest_bundles_list(&bundles, i, &info);
		const char *const fault = opwest_bundle_fault_name(info.verdict.fault);

		printk("slot %u: %d %s%s%s%s%s\n", i, rc, fault != NULL ? fault : "?",
		       info.is_active ? " active" : "", info.is_trying ? " trying" : "",
		       info.is_previous ? " previous" : "", info.is_target ? " target" : "");
	}
}

static void print_state(void)
{
	struct opwest_bundle_record record;

	opwest_bundles_state(&bundles, &record);
	printk("state: active %u trying %u previous %u crashes %u %s\n", record.active,
	       record.trying, record.previous, record.crashes,
	       opwest_bundle_fault_name(record.fault));
}

static void print_operations(void)
{
	struct opwest_flash_emul_state *const state = state_of_flash();

	printk("operations: %u, %u blocks erased, %u bytes in %u writes\n", state->operations,
	       state->erased, state->written, state->writes);
	state->operations = 0U;
	state->erased = 0U;
	state->written = 0U;
	state->writes = 0U;
}

static void print_stack(void)
{
	size_t unused = 0U;

	(void)k_thread_stack_space_get(k_current_get(), &unused);
	printk("stack: %u bytes\n", (uint32_t)(CONFIG_MAIN_STACK_SIZE - unused));
}

/* The ticks of one run of the first case, with interrupts locked. */
static void count_ticks(const struct cases *cases)
{
	const struct opwest_bundle_descriptor *descriptor;
	const void *const inputs[] = {input_of(cases, 0U)};
	void *const outputs[] = {output};
	uint32_t ticks;
	unsigned int key;
	int rc = opwest_session_hold(&sessions[0], &descriptor, NULL);

	if (rc == 0) {
		key = irq_lock();
		ticks = k_cycle_get_32();
		rc = descriptor->run(inputs, outputs, sessions[0].workspace, sessions[0].devices);
		ticks = k_cycle_get_32() - ticks;
		irq_unlock(key);
		opwest_session_release(&sessions[0]);
		printk("ticks: %d %u\n", rc, ticks);
	}
}

/* Store records of another number, so that the next ones need a new block of flash. */
static void fill(uint32_t count)
{
	for (uint32_t i = 0U; i < count; i++) {
		state_of_flash()->erased = 0U;
		const int rc = config.storage->api->store(config.storage, FILL_RECORD, &i, sizeof(i));

		if (rc != 0 || state_of_flash()->erased != 0U) {
			printk("fill %u: %d, %u blocks erased\n", i, rc, state_of_flash()->erased);
		}
	}
}

/* Change a byte behind the back of the manager. */
static void damage(uint32_t slot, uint32_t offset)
{
	((uint8_t *)config.storage->slots[slot].memory)[offset] ^= 0x10U;
}

void command(char *line)
{
	struct opwest_bundle_verdict verdict = {0};
	const char *words[MAX_WORDS] = {0};
	uint32_t numbers[MAX_WORDS] = {0};
	char *rest = line;
	int rc;

	for (uint32_t i = 0U; i < MAX_WORDS; i++) {
		words[i] = strtok_r(rest, " ", &rest);
		if (words[i] == NULL) {
			break;
		}
		numbers[i] = strtoul(words[i], NULL, 0);
	}
	const char *const name = words[0];

	if (strcmp(name, "options") == 0) {
		config.waits_for_confirmation = numbers[1] != 0U;
		config.allows_downgrade = numbers[2] != 0U;
	} else if (strcmp(name, "start") == 0) {
		printk("start: %d\n", start());
		print_model();
	} else if (strcmp(name, "install") == 0) {
		rc = install(numbers[1], numbers[2] != 0U ? numbers[2] : 256U, &verdict);
		print_verdict("install", rc, &verdict);
		print_model();
	} else if (strcmp(name, "upload") == 0) {
		printk("upload: %d\n", upload(numbers[1], 256U, numbers[2]));
	} else if (strcmp(name, "rollback") == 0) {
		rc = opwest_bundles_roll_back(&bundles, &verdict);
		print_verdict("rollback", rc, &verdict);
		print_model();
	} else if (strcmp(name, "confirm") == 0) {
		printk("confirm: %d\n", opwest_bundles_confirm(&bundles));
	} else if (strcmp(name, "cases") == 0) {
		const struct cases *const cases = cases_of(numbers[1]);

		rc = run_cases(cases, 0U, cases->count);
		printk("cases: %d of %u\n", rc, cases->count);
	} else if (strcmp(name, "list") == 0) {
		print_list();
	} else if (strcmp(name, "state") == 0) {
		print_state();
	} else if (strcmp(name, "operations") == 0) {
		print_operations();
	} else if (strcmp(name, "stack") == 0) {
		print_stack();
	} else if (strcmp(name, "ticks") == 0) {
		count_ticks(cases_of(numbers[1]));
	} else if (strcmp(name, "fill") == 0) {
		fill(numbers[1]);
	} else if (strcmp(name, "damage") == 0) {
		damage(numbers[1], numbers[2]);
	} else if (strcmp(name, "reset") == 0) {
		reset();
	} else if (strcmp(name, "threads") == 0) {
		run_threads(numbers[1], numbers[2], numbers[3]);
	} else if (strcmp(name, "campaign") == 0) {
		run_campaign(words[1], numbers[2], numbers[3], numbers[4], numbers[5], numbers[6]);
	} else {
		printk("error: unknown command '%s'\n", name);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The manager of slots, controlled by lines: console.py. Each line gives one line of answer, which
 * begins with the return code, or "cut".
 */
#include <errno.h>

#include <opwest/bundles.h>

#include "given.h"
#include "simulated.h"

#define MOST_FILES    128
#define MOST_SESSIONS 3
#define MOST_KEYS     3
#define PART          100U

static struct {
	char name[40];
	struct file file;
} files[MOST_FILES];
static int file_count;
static struct opwest_bundles bundles;
static struct opwest_bundle_key keys[MOST_KEYS];
static struct device handles[] = {{.name = "a"}, {.name = "b"}, {.name = "c"}, {.name = "d"}};
static struct opwest_bundle_device devices[4];
static char device_words[8][16];
static const struct opwest_host_devices host_devices;
static struct opwest_host host;
static uint32_t failures_logged;
static struct opwest_bundles_config config;
static struct opwest_session sessions[MOST_SESSIONS];
static uint8_t *session_memory[MOST_SESSIONS];
static struct opwest_bundle_pool own_pool = {.name = "fast"};
static bool uses_own_pool;

static void log_failure(const char *model, uint16_t step, int32_t code)
{
	(void)model;
	(void)step;
	(void)code;
	failures_logged++;
}

static struct file *file_of(const char *name)
{
	for (int i = 0; i < file_count; i++) {
		if (strcmp(files[i].name, name) == 0) {
			return &files[i].file;
		}
	}
	fprintf(stderr, "no file %s\n", name);
	exit(2);
}

static void add_file(const char *name, const char *path)
{
	if (file_count == MOST_FILES) {
		exit(2);
	}
	files[file_count].file = read_file(path);
	(void)snprintf(files[file_count++].name, sizeof(files[0].name), "%s", name);
}

static void set_key(unsigned int index, const char *hex)
{
	(void)bytes_of(hex, keys[index].bytes);
	config.key_count = (uint8_t)(index + 1U);
}

/* "name:type,name:type"; "-" for none */
static void set_devices(const char *text)
{
	static char copy[160];
	char *rest = copy;
	unsigned int count = 0U;

	(void)snprintf(copy, sizeof(copy), "%s", text);
	for (char *word = strtok_r(rest, ",", &rest); word != NULL && count < 4U;
	     word = strtok_r(NULL, ",", &rest)) {
		char *const name = device_words[2U * count];
		char *const type = device_words[2U * count + 1U];

		(void)sscanf(word, "%15[^:]:%15s", name, type);
		devices[count] = (struct opwest_bundle_device){
			.name = strcmp(name, "-") == 0 ? NULL : name,
			.type = strcmp(type, "-") == 0 ? NULL : type,
			.dev = &handles[count],
		};
		count++;
	}
	config.devices = devices;
	config.device_count = (uint8_t)count;
}

/* Remove a part of the configuration. */
static void remove_part(const char *name)
{
	static struct opwest_bundle_storage_api api;

	api = *simulated_storage.api;
	if (strcmp(name, "storage") == 0) {
		config.storage = NULL;
	} else if (strcmp(name, "api") == 0) {
		simulated_storage.api = NULL;
		return;
	} else if (strcmp(name, "slots") == 0) {
		simulated_storage.slots = NULL;
	} else if (strcmp(name, "keys") == 0) {
		config.keys = NULL;
	} else if (strcmp(name, "host") == 0) {
		config.host = NULL;
	} else if (strcmp(name, "devices") == 0) {
		config.devices = NULL;
		config.device_count = 1U;
	} else if (strcmp(name, "erase") == 0) {
		api.erase = NULL;
	} else if (strcmp(name, "write") == 0) {
		api.write = NULL;
	} else if (strcmp(name, "synchronise") == 0) {
		api.synchronise = NULL;
	} else if (strcmp(name, "load") == 0) {
		api.load = NULL;
	} else if (strcmp(name, "store") == 0) {
		api.store = NULL;
	} else {
		exit(2);
	}
	simulated_storage.api = &api;
}

static void set(const char *name, const char *value)
{
	const long number = strtol(value, NULL, 0);

	if (strcmp(name, "downgrade") == 0) {
		config.allows_downgrade = number != 0;
	} else if (strcmp(name, "waits") == 0) {
		config.waits_for_confirmation = number != 0;
	} else if (strcmp(name, "crash_limit") == 0) {
		config.crash_limit = (uint8_t)number;
	} else if (strcmp(name, "trial") == 0) {
		free(config.trial.memory);
		config.trial.memory = number == 0 ? NULL : malloc((size_t)number);
		config.trial.size = (uint32_t)number;
	} else if (strcmp(name, "devices") == 0) {
		set_devices(value);
	} else if (strcmp(name, "host_devices") == 0) {
		host.devices = number != 0 ? &host_devices : NULL;
	} else if (strcmp(name, "host_version") == 0) {
		host.version = (uint16_t)number;
	} else if (strcmp(name, "keys") == 0) {
		config.key_count = (uint8_t)number;
	} else if (strcmp(name, "loader") == 0) {
		simulated_storage.api = &simulated_api_linked;
	} else if (strcmp(name, "fast") == 0) {
		own_pool.memory = aligned_alloc(64U, 64U);
		own_pool.memory += number % 64;
		own_pool.size = (uint32_t)(number / 64);
		uses_own_pool = true;
	} else if (strcmp(name, "load") == 0) {
		simulated.load_code = (int)number;
	} else if (strcmp(name, "synchronise") == 0) {
		simulated.synchronise_code = (int)number;
	} else if (strcmp(name, "link") == 0) {
		simulated.link_code = (int)number;
	} else if (strcmp(name, "descriptor") == 0) {
		simulated.descriptor_offset = (uint32_t)number;
	} else if (strcmp(name, "slot_size") == 0) {
		simulated.slots[number >> 16].size = (uint32_t)number & 0xffffU;
	} else if (strcmp(name, "slot_shift") == 0) {
		simulated.slots[1].memory += number;
	} else if (strcmp(name, "write_size") == 0) {
		simulated.slots[1].write_size = (uint32_t)number;
	} else if (strcmp(name, "remove") == 0) {
		remove_part(value);
	} else if (strcmp(name, "slot_count") == 0) {
		simulated_storage.slot_count = (uint8_t)number;
	} else {
		exit(2);
	}
}

/* -1: the slot of the next upload. */
static uint8_t slot_of(const char *word)
{
	return (uint8_t)strtol(word, NULL, 0);
}

static int begin(const char *slot, const struct file *file, uint32_t *offset)
{
	return opwest_bundles_begin(&bundles, slot_of(slot), file->size, file->digest, offset);
}

/* A part is a copy of its exact size, so the sanitizer finds reads behind it. */
static int write_part(const struct file *file, uint32_t offset, uint32_t size, uint32_t *next)
{
	uint8_t *const part = malloc(size == 0U ? 1U : size);
	const uint32_t rest = offset < file->size ? file->size - offset : 0U;
	int rc;

	memset(part, 0, size == 0U ? 1U : size);
	memcpy(part, &file->data[file->size - rest], size < rest ? size : rest);
	rc = opwest_bundles_write(&bundles, offset, part, size, next);
	free(part);
	return rc;
}

static int send(const char *slot, const struct file *file)
{
	uint32_t offset = 0U;
	int rc = begin(slot, file, &offset);

	while (rc == 0 && offset < file->size) {
		const uint32_t rest = file->size - offset;
		const uint32_t size = rest < PART ? rest : PART;
		uint32_t next = offset;

		rc = write_part(file, offset, size, &next);
		if (rc == 0 && next != offset + size) {
			return -EPROTO;
		}
		offset = next;
	}
	return rc;
}

static void print_verdict(int rc, const struct opwest_bundle_verdict *verdict)
{
	printf("%d %u %ld %llx %llx\n", rc, verdict->fault, (long)verdict->detail,
	       (unsigned long long)verdict->found, (unsigned long long)verdict->expected);
}

static void add_session(unsigned int index, uint32_t size)
{
	int rc;

	free(session_memory[index]);
	session_memory[index] = malloc(size);
	memset(&sessions[index], 0xa5, sizeof(sessions[index]));
	sessions[index].memory = (struct opwest_bundle_memory){
		.memory = session_memory[index],
		.size = size,
		.pools = uses_own_pool ? &own_pool : NULL,
		.pool_count = uses_own_pool ? 1U : 0U,
	};
	rc = opwest_session_add(&bundles, &sessions[index]);
	printf("%d\n", rc);
}

static void run_session(unsigned int index, const char *how, int first)
{
	const int8_t x[4] = {(int8_t)first, 1, 2, 3};
	int32_t y[4] = {0};
	float z = 0.0F;
	const void *const inputs[] = {x};
	void *const outputs[] = {how[0] == 'u' ? (uint8_t *)y + 1 : (uint8_t *)y, &z};
	struct opwest_session *const session = &sessions[index];
	const bool passes_null = how[0] == 'n';
	int rc;

	if (strcmp(how, "held") == 0) {
		rc = opwest_session_run_held(session, inputs, outputs);
	} else {
		rc = opwest_session_run(session,
					strcmp(how, "other") == 0 ? 1U : 0x1122334455667788ULL,
					passes_null ? NULL : inputs,
					passes_null && how[1] == 'o' ? NULL : outputs);
	}
	printf("%d %ld %ld %g\n", rc, (long)y[0], (long)y[3], (double)z);
}

static void list(uint8_t slot)
{
	struct opwest_bundle_info info;
	const int rc = opwest_bundles_list(&bundles, slot, &info);

	if (rc != 0) {
		printf("%d\n", rc);
		return;
	}
	printf("%d %u %s %lx %lx %x %c%c%c%c\n", rc, info.verdict.fault,
	       info.header.name[0] == '\0' ? "-" : info.header.name,
	       (unsigned long)info.header.version, (unsigned long)info.address, info.size,
	       info.is_active ? 'A' : '-', info.is_trying ? 'T' : '-', info.is_previous ? 'P' : '-',
	       info.is_target ? 'N' : '-');
}

static void print_difference(int rc, const struct opwest_bundle_difference *found)
{
	printf("%d %s %s %u %lu %lu\n", rc, found->operator_name == NULL ? "-" : found->operator_name,
	       found->tensor == NULL ? "-" : found->tensor, found->step, (unsigned long)found->element,
	       (unsigned long)found->count);
}

static void check_part(char **words)
{
	struct opwest_bundle_difference found;
	uint8_t expected[64];
	const uint32_t size = (uint32_t)bytes_of(words[4], expected);
	const int rc = opwest_bundles_check_part(&bundles, (uint16_t)atoi(words[1]),
						 (uint16_t)atoi(words[2]),
						 (uint32_t)strtoul(words[3], NULL, 0), expected,
						 size, &found);

	print_difference(rc, &found);
}

static void start(void)
{
	int rc;

	memset(sessions, 0, sizeof(sessions));
	memset(simulated.links, 0, sizeof(simulated.links));
	memset(&bundles, 0, sizeof(bundles));
	rc = opwest_bundles_start(&bundles, &config);
	printf("%d\n", rc);
}

static void set_record(unsigned int id, const char *hex)
{
	simulated.records[id].size = hex == NULL ? 0U : (uint32_t)bytes_of(hex, simulated.records[id].data);
	printf("0\n");
}

static void session_command(char **words, unsigned int index)
{
	const struct opwest_bundle_descriptor *descriptor = NULL;
	const struct opwest_bundle_header *header = NULL;
	struct opwest_status status = {0};
	int rc;

	if (strcmp(words[0], "session") == 0) {
		add_session(index, (uint32_t)strtoul(words[2], NULL, 0));
	} else if (strcmp(words[0], "run") == 0) {
		run_session(index, words[2], words[3] == NULL ? 7 : atoi(words[3]));
	} else if (strcmp(words[0], "hold") == 0) {
		rc = opwest_session_hold(&sessions[index], &descriptor,
					 words[2] == NULL ? &header : NULL);
		printf("%d %s %s\n", rc, descriptor == NULL ? "-" : descriptor->details->model->name,
		       header == NULL ? "-" : header->name);
	} else if (strcmp(words[0], "release") == 0) {
		opwest_session_release(&sessions[index]);
		printf("0\n");
	} else if (strcmp(words[0], "reset") == 0) {
		printf("%d\n", opwest_session_reset(&sessions[index]));
	} else if (strcmp(words[0], "status") == 0) {
		rc = opwest_session_status(&sessions[index], &status);
		printf("%d %ld %u\n", rc, (long)status.code, status.step);
	} else {
		fprintf(stderr, "unknown command %s\n", words[0]);
		exit(2);
	}
}

static void print_state(void)
{
	struct opwest_bundle_record record;

	opwest_bundles_state(&bundles, &record);
	printf("0 %d %d %d %u %u\n", (int8_t)record.active, (int8_t)record.trying,
	       (int8_t)record.previous, record.crashes, record.fault);
}

static void storage_command(char **words)
{
	if (strcmp(words[0], "flip") == 0) {
		simulated_memory(slot_of(words[1]))[strtoul(words[2], NULL, 0)] ^=
			(uint8_t)strtoul(words[3], NULL, 0);
		printf("0\n");
	} else if (strcmp(words[0], "record") == 0) {
		set_record((unsigned int)atoi(words[1]), words[2]);
	} else if (strcmp(words[0], "disturb") == 0) {
		simulated_disturb((uint32_t)atoi(words[1]), (enum when)atoi(words[2]),
				  (uint32_t)atoi(words[3]), atoi(words[4]));
		simulated.next_code = words[5] == NULL ? 0 : atoi(words[5]);
		printf("0\n");
	} else if (strcmp(words[0], "operations") == 0) {
		printf("0 %u %u %u %u %d %d %d %u\n", simulated.operations, simulated.erases,
		       simulated.writes, simulated.stores, simulated.links[0], simulated.links[1],
		       simulated.links[2], failures_logged);
	} else if (strcmp(words[0], "open") == 0) {
		simulated_open((uint8_t)atoi(words[1]), (uint32_t)atoi(words[2]),
			       (uint8_t)strtoul(words[3], NULL, 0));
		printf("0\n");
	} else {
		session_command(words, words[1] == NULL ? 0U : (unsigned int)atoi(words[1]));
	}
}

static void upload_command(char **words)
{
	uint32_t offset = 0U;
	int rc;

	if (strcmp(words[0], "begin") == 0) {
		rc = begin(words[1], file_of(words[2]), &offset);
		printf("%d %lu\n", rc, (unsigned long)offset);
	} else if (strcmp(words[0], "write") == 0) {
		rc = write_part(file_of(words[1]), (uint32_t)strtoul(words[2], NULL, 0),
				(uint32_t)strtoul(words[3], NULL, 0), &offset);
		printf("%d %lu\n", rc, (unsigned long)offset);
	} else if (strcmp(words[0], "send") == 0) {
		printf("%d\n", send(words[1], file_of(words[2])));
	} else {
		storage_command(words);
	}
}

static void command(char **words)
{
	struct opwest_bundle_verdict verdict = {.fault = 99U};
	struct opwest_bundle_difference found;
	struct opwest_bundle_header header;
	int rc;

	if (strcmp(words[0], "set") == 0) {
		set(words[1], words[2]);
		printf("0\n");
	} else if (strcmp(words[0], "key") == 0) {
		set_key((unsigned int)atoi(words[1]), words[2]);
		printf("0\n");
	} else if (strcmp(words[0], "file") == 0) {
		add_file(words[1], words[2]);
		printf("0\n");
	} else if (strcmp(words[0], "start") == 0) {
		start();
	} else if (strcmp(words[0], "install") == 0) {
		rc = opwest_bundles_install(&bundles, &verdict);
		print_verdict(rc, &verdict);
	} else if (strcmp(words[0], "roll_back") == 0) {
		rc = opwest_bundles_roll_back(&bundles, &verdict);
		print_verdict(rc, &verdict);
	} else if (strcmp(words[0], "confirm") == 0) {
		printf("%d\n", opwest_bundles_confirm(&bundles));
	} else if (strcmp(words[0], "healthy") == 0) {
		printf("%d\n", opwest_bundles_healthy(&bundles));
	} else if (strcmp(words[0], "state") == 0) {
		print_state();
	} else if (strcmp(words[0], "list") == 0) {
		list(slot_of(words[1]));
	} else if (strcmp(words[0], "steps") == 0) {
		rc = opwest_bundles_check_steps(&bundles, &found);
		print_difference(rc, &found);
	} else if (strcmp(words[0], "part") == 0) {
		check_part(words);
	} else if (strcmp(words[0], "needs") == 0) {
		(void)opwest_bundle_parse(file_of(words[1])->data, file_of(words[1])->size, &header);
		printf("0 %lu\n", (unsigned long)opwest_bundles_needs(&header));
	} else {
		upload_command(words);
	}
}

int main(void)
{
	static char line[512];

	simulated_open(2U, 4U, 0xffU);
	host = opwest_bundle_host;
	host.log_failure = log_failure;
	config = (struct opwest_bundles_config){
		.storage = &simulated_storage,
		.keys = keys,
		.host = &host,
	};
	while (fgets(line, sizeof(line), stdin) != NULL) {
		char *words[8] = {NULL};
		char *rest = line;

		for (int i = 0; i < 7; i++) {
			words[i] = strtok_r(rest, " \n", &rest);
		}
		if (setjmp(simulated.cut) == 0) {
			command(words);
		} else {
			printf("cut\n");
		}
		(void)fflush(stdout);
	}
	return 0;
}

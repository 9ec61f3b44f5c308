/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The manager of slots, controlled by lines: core_support.py. Each line gives one line of answer,
 * which begins with the return code, or is "cut", or "off" after a cut.
 */
#include <errno.h>

#include <opwest/bundles.h>

#include "given.h"
#include "simulated.h"

#define MAX_FILES    512
#define MAX_SESSIONS 3
#define MAX_KEYS     3

static struct {
	char name[40];
	struct file file;
} files[MAX_FILES];
static int file_count;
static struct opwest_bundles bundles;
static struct opwest_bundle_key keys[MAX_KEYS];
static struct device handles[] = {{.name = "a"}, {.name = "b"}, {.name = "c"}, {.name = "d"}};
static struct opwest_bundle_device devices[4];
static char device_words[8][16];
static const struct opwest_host_devices host_devices;
static struct opwest_host host;
static uint32_t failures_logged;
/* After a cut of the power, until the next start. */
static bool is_off;
static struct opwest_bundles_config config;
static struct opwest_session sessions[MAX_SESSIONS];
static uint8_t *session_memory[MAX_SESSIONS];
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

#define FIELD(name, place) {name, &(place), sizeof(place)}

/* What `set` gives a number; 0 removes a pointer. */
static const struct {
	const char *name;
	void *place;
	size_t size;
} fields[] = {
	FIELD("downgrade", config.allows_downgrade),
	FIELD("waits", config.waits_for_confirmation),
	FIELD("crash_limit", config.crash_limit),
	FIELD("key_count", config.key_count),
	FIELD("device_count", config.device_count),
	FIELD("host_version", host.version),
	FIELD("load_code", simulated.load_code),
	FIELD("synchronise_code", simulated.synchronise_code),
	FIELD("link_code", simulated.link_code),
	FIELD("descriptor", simulated.descriptor_offset),
	FIELD("write_size", simulated.slots[1].write_size),
	FIELD("slot_count", simulated_storage.slot_count),
	FIELD("storage", config.storage),
	FIELD("keys", config.keys),
	FIELD("host", config.host),
	FIELD("device_table", config.devices),
	FIELD("api", simulated_storage.api),
	FIELD("slots", simulated_storage.slots),
	FIELD("erase", simulated_api.erase),
	FIELD("write", simulated_api.write),
	FIELD("synchronise", simulated_api.synchronise),
	FIELD("load", simulated_api.load),
	FIELD("store", simulated_api.store),
	FIELD("link", simulated_api.link),
	FIELD("unlink", simulated_api.unlink),
};

static void set_field(const char *name, long number)
{
	for (size_t i = 0U; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (strcmp(fields[i].name, name) == 0) {
			memcpy(fields[i].place, &number, fields[i].size);
			return;
		}
	}
	fprintf(stderr, "no field %s\n", name);
	exit(2);
}

static void set(const char *name, const char *value)
{
	const long number = strtol(value, NULL, 0);

	if (strcmp(name, "trial") == 0) {
		free(config.trial.memory);
		config.trial.memory = number == 0 ? NULL : malloc((size_t)number);
		config.trial.size = (uint32_t)number;
	} else if (strcmp(name, "devices") == 0) {
		set_devices(value);
	} else if (strcmp(name, "host_devices") == 0) {
		host.devices = number != 0 ? &host_devices : NULL;
	} else if (strcmp(name, "fast") == 0) {
		own_pool.memory = aligned_alloc(64U, 64U);
		own_pool.memory += number % 64;
		own_pool.size = (uint32_t)(number / 64);
		uses_own_pool = true;
	} else if (strcmp(name, "slot_size") == 0) {
		simulated.slots[number >> 16].size = (uint32_t)number & 0xffffU;
	} else if (strcmp(name, "slot_shift") == 0) {
		simulated.slots[1].memory += number;
	} else {
		set_field(name, number);
	}
}

/* 0 without a word; the slot -1 is that of the next upload. */
static uint32_t number(const char *word)
{
	return word == NULL ? 0U : (uint32_t)strtol(word, NULL, 0);
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

/* In parts of this size; 0: of 100 bytes. */
static int send(uint8_t slot, const struct file *file, uint32_t part)
{
	uint32_t offset = 0U;
	int rc = opwest_bundles_begin(&bundles, slot, file->size, file->digest, &offset);

	part = part == 0U ? 100U : part;
	while (rc == 0 && offset < file->size) {
		const uint32_t rest = file->size - offset;
		const uint32_t size = rest < part ? rest : part;
		uint32_t next = offset;

		rc = write_part(file, offset, size, &next);
		if (rc == 0 && next != offset + size) {
			return -EPROTO;
		}
		offset = next;
	}
	return rc;
}

static void add_session(unsigned int index, uint32_t size)
{
	free(session_memory[index]);
	session_memory[index] = malloc(size);
	memset(&sessions[index], 0xa5, sizeof(sessions[index]));
	sessions[index].memory = (struct opwest_bundle_memory){
		.memory = session_memory[index],
		.size = size,
		.pools = uses_own_pool ? &own_pool : NULL,
		.pool_count = uses_own_pool ? 1U : 0U,
	};
	printf("%d\n", opwest_session_add(&bundles, &sessions[index]));
}

static void run_session(struct opwest_session *session, const char *how, int8_t first)
{
	const int8_t x[4] = {first, 1, 2, 3};
	int32_t y[4] = {0};
	float z = 0.0F;
	const void *const inputs[] = {x};
	void *const outputs[] = {how[0] == 'u' ? (uint8_t *)y + 1 : (uint8_t *)y, &z};
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
	printf("%d %s %s %u %lu %lu\n", rc,
	       found->operator_name == NULL ? "-" : found->operator_name,
	       found->tensor == NULL ? "-" : found->tensor, found->step,
	       (unsigned long)found->element, (unsigned long)found->count);
}

static void start(void)
{
	memset(sessions, 0, sizeof(sessions));
	memset(simulated.links, 0, sizeof(simulated.links));
	memset(&bundles, 0, sizeof(bundles));
	printf("%d\n", opwest_bundles_start(&bundles, &config));
}

static void print_state(void)
{
	struct opwest_bundle_record record;

	opwest_bundles_state(&bundles, &record);
	printf("0 %d %d %d %u %u\n", (int8_t)record.active, (int8_t)record.trying,
	       (int8_t)record.previous, record.crashes, record.fault);
}

/* The fault of a header; the size of the file, whether it is signed, the verdict of the ABI. */
static void parse(const struct file *file)
{
	struct opwest_bundle_header header;
	struct opwest_bundle_verdict verdict = {0};
	const enum opwest_bundle_fault fault = opwest_bundle_parse(file->data, file->size, &header);

	printf("%d", fault);
	if (fault == OPWEST_BUNDLE_GOOD) {
		const bool agrees = opwest_bundle_abi_agrees(&header, &verdict);

		printf(" %zu %d %d %u %ld %llx %llx",
		       opwest_bundle_total(file->data, file->size, &header),
		       opwest_bundle_signed(file->data, file->size, &header, keys,
					    config.key_count),
		       agrees, verdict.fault, (long)verdict.detail,
		       (unsigned long long)verdict.found, (unsigned long long)verdict.expected);
		printf(" %s %lx %llx %u %u %u", header.name, (unsigned long)header.version,
		       (unsigned long long)header.interface_hash, header.kind, header.length,
		       header.abi.outputs_size);
	}
	printf("\n");
}

static void session_command(char **words, struct opwest_session *session)
{
	const struct opwest_bundle_descriptor *descriptor = NULL;
	const struct opwest_bundle_header *header = NULL;
	struct opwest_status status = {0};
	int rc;

	if (IS("session")) {
		add_session(number(words[1]), number(words[2]));
	} else if (IS("run")) {
		run_session(session, words[2], words[3] == NULL ? 7 : (int8_t)number(words[3]));
	} else if (IS("hold")) {
		rc = opwest_session_hold(session, &descriptor, words[2] == NULL ? &header : NULL);
		printf("%d %s %s\n", rc,
		       descriptor == NULL ? "-" : descriptor->details->model->name,
		       header == NULL ? "-" : header->name);
	} else if (IS("release")) {
		opwest_session_release(session);
		printf("0\n");
	} else if (IS("reset")) {
		printf("%d\n", opwest_session_reset(session));
	} else if (IS("status")) {
		rc = opwest_session_status(session, &status);
		printf("%d %ld %u\n", rc, (long)status.code, status.step);
	} else {
		fprintf(stderr, "unknown command %s\n", words[0]);
		exit(2);
	}
}

/* All slots and records. */
static void copy_storage(bool saves)
{
	static uint8_t memory[MAX_SLOTS][SLOT_SIZE];
	static struct simulated saved;

	for (uint8_t i = 0U; i < MAX_SLOTS; i++) {
		uint8_t *const slot = simulated_memory(i);

		memcpy(saves ? memory[i] : slot, saves ? slot : memory[i], SLOT_SIZE);
	}
	if (saves) {
		saved = simulated;
	} else {
		simulated = saved;
	}
}

/* The storage and the configuration. Returns false for another command. */
static bool surroundings_command(char **words)
{
	const uint32_t first = number(words[1]);

	if (IS("set")) {
		set(words[1], words[2]);
	} else if (IS("key")) {
		(void)bytes_of(words[2], keys[first].bytes);
		config.key_count = (uint8_t)(first + 1U);
	} else if (IS("file") && file_count < MAX_FILES) {
		files[file_count].file = read_file(words[2]);
		(void)snprintf(files[file_count++].name, sizeof(files[0].name), "%s", words[1]);
	} else if (IS("flip")) {
		simulated_memory((uint8_t)first)[number(words[2])] ^= (uint8_t)number(words[3]);
	} else if (IS("record")) {
		simulated.records[first].size = 0U;
		if (words[2] != NULL) {
			simulated.records[first].size =
				(uint32_t)bytes_of(words[2], simulated.records[first].data);
		}
	} else if (IS("disturb")) {
		simulated_disturb(first, (enum when)number(words[2]), number(words[3]),
				  (int)number(words[4]));
		simulated.next_code = (int)number(words[5]);
	} else if (IS("save") || IS("restore")) {
		copy_storage(IS("save"));
	} else if (IS("open")) {
		simulated_open((uint8_t)first, number(words[2]), (uint8_t)number(words[3]));
	} else {
		return false;
	}
	printf("0\n");
	return true;
}

/* Commands that answer with their code only, or with an offset. */
static bool upload_command(char **words)
{
	const uint8_t slot = (uint8_t)number(words[1]);
	const struct file *file;
	uint32_t offset = 0U;
	int rc;

	if (IS("begin")) {
		file = file_of(words[2]);
		rc = opwest_bundles_begin(&bundles, slot, file->size, file->digest, &offset);
		printf("%d %lu\n", rc, (unsigned long)offset);
	} else if (IS("write")) {
		rc = write_part(file_of(words[1]), number(words[2]), number(words[3]),
				&offset);
		printf("%d %lu\n", rc, (unsigned long)offset);
	} else if (IS("send")) {
		printf("%d\n", send(slot, file_of(words[2]), number(words[3])));
	} else if (IS("confirm")) {
		printf("%d\n", opwest_bundles_confirm(&bundles));
	} else if (IS("healthy")) {
		printf("%d\n", opwest_bundles_healthy(&bundles));
	} else {
		return false;
	}
	return true;
}

static void command(char **words)
{
	struct opwest_bundle_verdict verdict = {.fault = 99U};
	struct opwest_bundle_difference found;
	struct opwest_bundle_header header;
	const struct file *file;
	uint8_t expected[64];
	uint32_t size;
	int rc;

	if (surroundings_command(words)) {
		return;
	}
	is_off = is_off && !IS("start");
	if (is_off) {
		printf("off\n");
	} else if (upload_command(words) || thread_command(words, sessions)) {
		return;
	} else if (IS("start")) {
		start();
	} else if (IS("install") || IS("roll_back")) {
		rc = IS("install") ? opwest_bundles_install(&bundles, &verdict)
				   : opwest_bundles_roll_back(&bundles, &verdict);
		printf("%d %u %ld %llx %llx\n", rc, verdict.fault, (long)verdict.detail,
		       (unsigned long long)verdict.found, (unsigned long long)verdict.expected);
	} else if (IS("state")) {
		print_state();
	} else if (IS("list")) {
		list((uint8_t)number(words[1]));
	} else if (IS("agrees")) {
		rc = opwest_bundle_try(&bundles, bundles.current, &verdict) ? 0 : -EILSEQ;
		printf("%d\n", rc);
	} else if (IS("operations")) {
		printf("0 %u %u %u %u %d %d %d %u\n", simulated.operations, simulated.erases,
		       simulated.writes, simulated.stores, simulated.links[0], simulated.links[1],
		       simulated.links[2], failures_logged);
	} else if (IS("steps")) {
		rc = opwest_bundles_check_steps(&bundles, &found);
		print_difference(rc, &found);
	} else if (IS("part")) {
		size = (uint32_t)bytes_of(words[4], expected);
		rc = opwest_bundles_check_part(&bundles, (uint16_t)number(words[1]),
					       (uint16_t)number(words[2]), number(words[3]),
					       expected, size, &found);
		print_difference(rc, &found);
	} else if (IS("parse")) {
		parse(file_of(words[1]));
	} else if (IS("needs")) {
		file = file_of(words[1]);
		(void)opwest_bundle_parse(file->data, file->size, &header);
		printf("0 %lu\n", (unsigned long)opwest_bundles_needs(&header));
	} else {
		session_command(words, &sessions[number(words[1])]);
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
		if (setjmp(simulated.cut) != 0) {
			is_off = true;
			printf("cut\n");
		} else {
			command(words);
		}
		(void)fflush(stdout);
	}
	return 0;
}

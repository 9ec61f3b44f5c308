/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include <zephyr/init.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/byteorder.h>
#include <zephyr/sys/crc.h>
#include <zephyr/sys/util.h>

#include <opwest/errors.h>

#include "service_internal.h"

/* Bytes of the digest in the checksum of a part. */
#define CHECKED_DIGEST 8U

/* The field `state` of the response to a request for a job. */
enum {
	RUNNING = 0,
	DONE = 1,
	/* It was not begun: `result` is the reason. */
	REFUSED = 2,
};

static K_MUTEX_DEFINE(mutex);
static K_CONDVAR_DEFINE(ended);
static K_THREAD_STACK_DEFINE(stack, CONFIG_OPWEST_BUNDLE_STACK_SIZE);
static struct k_work_q queue;

/* Protected by the mutex. */
static struct opwest_bundles *served;

/* The digest of the upload that a host began. */
static struct {
	uint8_t digest[OPWEST_BUNDLE_DIGEST_SIZE];
	bool is_begun;
} upload;

/*
 * The latest job. While it runs, only its thread accesses the members below `is_running`, and no
 * thread changes the members above.
 */
static struct {
	struct k_work work;
	struct opwest_bundles *bundles;
	struct opwest_bundle_request request;
	uint8_t data[OPWEST_BUNDLE_JOB_DATA];
	/* Counts jobs. */
	uint32_t serial;
	bool is_running;
	int result;
	struct opwest_bundle_record record;
	struct opwest_bundle_info info;
	struct opwest_bundle_verdict verdict;
	struct opwest_bundle_difference difference;
	/* Copies: the names are in a slot that a later upload erases. */
	char operator_name[OPWEST_BUNDLE_NAME_SIZE];
	char tensor[OPWEST_BUNDLE_NAME_SIZE];
	uint32_t offset;
	uint8_t slot;
} job;

void opwest_bundles_serve(struct opwest_bundles *bundles)
{
	(void)k_mutex_lock(&mutex, K_FOREVER);
	served = bundles != NULL && bundles->started ? bundles : NULL;
	(void)k_mutex_unlock(&mutex);
}

/* Names of bundles without a valid signature are any bytes. */
static void copy_name(char *to, const char *from)
{
	size_t length = 0;

	while (from != NULL && length < OPWEST_BUNDLE_NAME_SIZE - 1U && from[length] != '\0') {
		const char c = from[length];

		to[length] = c > ' ' && c < 0x7f ? c : '?';
		length++;
	}
	to[length] = '\0';
}

static void put_unsigned(const struct opwest_bundle_sink *sink, const char *key, uint64_t value)
{
	sink->put_unsigned(sink->writer, key, value);
}

static void put_signed(const struct opwest_bundle_sink *sink, const char *key, int32_t value)
{
	sink->put_signed(sink->writer, key, value);
}

static void put_text(const struct opwest_bundle_sink *sink, const char *key, const char *text)
{
	sink->put_text(sink->writer, key, text);
}

static void put_bytes(const struct opwest_bundle_sink *sink, const char *key, const uint8_t *data,
		      uint32_t size)
{
	sink->put_bytes(sink->writer, key, data, size);
}

static void put_result(const struct opwest_bundle_sink *sink, int result)
{
	put_signed(sink, "result", result);
	put_text(sink, "error", opwest_error_name(result));
}

static const char *fault_name(uint8_t fault)
{
	const char *const name = opwest_bundle_fault_name(fault);

	return name != NULL ? name : "";
}

static void put_verdict(const struct opwest_bundle_sink *sink,
			const struct opwest_bundle_verdict *verdict)
{
	put_unsigned(sink, "fault", verdict->fault);
	put_text(sink, "fault_name", fault_name(verdict->fault));
	put_signed(sink, "detail", verdict->detail);
	put_unsigned(sink, "found", verdict->found);
	put_unsigned(sink, "expected", verdict->expected);
}

static void put_record(const struct opwest_bundle_sink *sink)
{
	put_unsigned(sink, "active", job.record.active);
	put_unsigned(sink, "trying", job.record.trying);
	put_unsigned(sink, "previous", job.record.previous);
	put_unsigned(sink, "crashes", job.record.crashes);
	put_unsigned(sink, "fault", job.record.fault);
	put_text(sink, "fault_name", fault_name(job.record.fault));
}

/* Whether the verdict is one about a header that was read. */
static bool has_header(const struct opwest_bundle_info *info)
{
	switch (info->verdict.fault) {
	case OPWEST_BUNDLE_NO_BUNDLE:
	case OPWEST_BUNDLE_FORMAT:
	case OPWEST_BUNDLE_HEADER:
	case OPWEST_BUNDLE_SIZE:
		return false;
	default:
		return true;
	}
}

static void put_slot(const struct opwest_bundle_sink *sink)
{
	const struct opwest_bundle_info *const info = &job.info;

	put_unsigned(sink, "address", info->address);
	put_unsigned(sink, "size", info->size);
	put_unsigned(sink, "is",
		     (info->is_active ? 1U : 0U) | (info->is_trying ? 2U : 0U) |
			     (info->is_previous ? 4U : 0U) | (info->is_target ? 8U : 0U));
	put_verdict(sink, &info->verdict);
	if (!has_header(info)) {
		return;
	}
	copy_name(job.tensor, info->header.name);
	put_text(sink, "name", job.tensor);
	put_unsigned(sink, "version", info->header.version);
	put_unsigned(sink, "length", info->header.length);
	put_unsigned(sink, "kind", info->header.kind);
	put_unsigned(sink, "interface", info->header.interface_hash);
	put_bytes(sink, "model", info->header.model_hash, sizeof(info->header.model_hash));
}

static void put_difference(const struct opwest_bundle_sink *sink)
{
	put_text(sink, "operator", job.operator_name);
	put_text(sink, "tensor", job.tensor);
	put_unsigned(sink, "step", job.difference.step);
	put_unsigned(sink, "element", job.difference.element);
	put_unsigned(sink, "count", job.difference.count);
}

static void put_fields(const struct opwest_bundle_sink *sink)
{
	switch (job.request.job) {
	case OPWEST_BUNDLE_JOB_STATE:
		put_record(sink);
		break;
	case OPWEST_BUNDLE_JOB_LIST:
		if (job.result == 0) {
			put_slot(sink);
		}
		break;
	case OPWEST_BUNDLE_JOB_BEGIN:
		put_unsigned(sink, "off", job.offset);
		put_unsigned(sink, "slot", job.slot);
		break;
	case OPWEST_BUNDLE_JOB_INSTALL:
	case OPWEST_BUNDLE_JOB_ROLL_BACK:
		put_verdict(sink, &job.verdict);
		break;
	case OPWEST_BUNDLE_JOB_STEPS:
	case OPWEST_BUNDLE_JOB_PART:
		if (job.result == -EILSEQ) {
			put_difference(sink);
		}
		break;
	default:
		break;
	}
}

static int begin(struct opwest_bundles *bundles, const struct opwest_bundle_request *request)
{
	int rc;

	rc = opwest_bundles_begin(bundles, (uint8_t)request->slot, request->size, request->digest,
				  &job.offset);
	job.slot = rc == 0 ? bundles->upload_slot : OPWEST_BUNDLE_NO_SLOT;
	return rc;
}

static int check(struct opwest_bundles *bundles, const struct opwest_bundle_request *request)
{
	int rc;

	if (request->job == OPWEST_BUNDLE_JOB_STEPS) {
		rc = opwest_bundles_check_steps(bundles, &job.difference);
	} else {
		rc = opwest_bundles_check_part(bundles, (uint16_t)request->point,
					       (uint16_t)request->buffer, request->offset, job.data,
					       request->data_size, &job.difference);
	}
	if (rc == -EILSEQ) {
		copy_name(job.operator_name, job.difference.operator_name);
		copy_name(job.tensor, job.difference.tensor);
	}
	return rc;
}

static int execute(struct opwest_bundles *bundles, const struct opwest_bundle_request *request)
{
	switch (request->job) {
	case OPWEST_BUNDLE_JOB_STATE:
		opwest_bundles_state(bundles, &job.record);
		return 0;
	case OPWEST_BUNDLE_JOB_LIST:
		return opwest_bundles_list(bundles, (uint8_t)request->slot, &job.info);
	case OPWEST_BUNDLE_JOB_BEGIN:
		return begin(bundles, request);
	case OPWEST_BUNDLE_JOB_INSTALL:
		return opwest_bundles_install(bundles, &job.verdict);
	case OPWEST_BUNDLE_JOB_CONFIRM:
		return opwest_bundles_confirm(bundles);
	case OPWEST_BUNDLE_JOB_ROLL_BACK:
		return opwest_bundles_roll_back(bundles, &job.verdict);
	default:
		return check(bundles, request);
	}
}

static void work(struct k_work *item)
{
	int result;

	ARG_UNUSED(item);

	job.info = (struct opwest_bundle_info){0};
	job.verdict = (struct opwest_bundle_verdict){0};
	job.difference = (struct opwest_bundle_difference){0};
	job.offset = 0;
	result = execute(job.bundles, &job.request);
	(void)k_mutex_lock(&mutex, K_FOREVER);
	job.result = result;
	if (job.request.job == OPWEST_BUNDLE_JOB_BEGIN) {
		upload.is_begun = result == 0;
		memcpy(upload.digest, job.request.digest, sizeof(upload.digest));
	}
	job.is_running = false;
	(void)k_condvar_broadcast(&ended);
	(void)k_mutex_unlock(&mutex);
}

static bool is_latest(const struct opwest_bundle_request *request)
{
	return job.serial != 0U && request->number != 0U &&
	       job.request.session == request->session && job.request.number == request->number &&
	       job.request.job == request->job;
}

static bool is_valid(const struct opwest_bundle_request *request)
{
	return request->job < OPWEST_BUNDLE_JOBS && request->slot <= OPWEST_BUNDLE_NO_SLOT &&
	       request->point <= UINT16_MAX && request->buffer <= UINT16_MAX;
}

/* Return 0 if the job is the latest one, else the reason. */
static int accept(const struct opwest_bundle_request *request)
{
	if (!is_valid(request)) {
		return -EINVAL;
	}
	if (request->data_size > sizeof(job.data)) {
		return -EMSGSIZE;
	}
	if (is_latest(request)) {
		return 0;
	}
	if (request->polls != 0U) {
		return -ENOENT;
	}
	if (job.is_running) {
		return -EBUSY;
	}
	if (job.serial != 0U && request->number != 0U && job.request.session == request->session &&
	    request->number <= job.request.number) {
		return -EALREADY;
	}
	job.request = *request;
	if (request->data_size != 0U) {
		memcpy(job.data, request->data, request->data_size);
	}
	job.request.data = NULL;
	job.bundles = served;
	job.serial = MAX(job.serial + 1U, 1U);
	job.is_running = true;
	(void)k_work_submit_to_queue(&queue, &job.work);
	return 0;
}

/* Wait for the end of the latest job, with the mutex; return whether it is still the latest. */
static bool wait_for(int32_t milliseconds)
{
	const int64_t end = k_uptime_get() + milliseconds;
	const uint32_t serial = job.serial;

	while (job.is_running && job.serial == serial) {
		const int64_t left = end - k_uptime_get();

		if (milliseconds >= 0 && left <= 0) {
			break;
		}
		(void)k_condvar_wait(&ended, &mutex,
				     milliseconds < 0 ? K_FOREVER : K_MSEC(left));
	}
	return job.serial == serial;
}

int opwest_bundle_put_info(const struct opwest_bundle_sink *sink)
{
	int rc = 0;

	(void)k_mutex_lock(&mutex, K_FOREVER);
	if (served == NULL) {
		rc = -EACCES;
	} else {
		put_unsigned(sink, "service", OPWEST_BUNDLE_SERVICE_VERSION);
		put_unsigned(sink, "format", OPWEST_BUNDLE_FORMAT_VERSION);
		put_unsigned(sink, "slots", served->config->storage->slot_count);
		put_unsigned(sink, "part", OPWEST_BUNDLE_JOB_DATA);
	}
	(void)k_mutex_unlock(&mutex);
	return rc;
}

int opwest_bundle_put_job(const struct opwest_bundle_request *request, int32_t milliseconds,
			  const struct opwest_bundle_sink *sink)
{
	int rc;

	(void)k_mutex_lock(&mutex, K_FOREVER);
	if (served == NULL) {
		(void)k_mutex_unlock(&mutex);
		return -EACCES;
	}
	rc = accept(request);
	if (rc == 0 && !wait_for(milliseconds)) {
		rc = -ENOENT; /* another host began the next one */
	}
	put_unsigned(sink, "session", request->session);
	put_unsigned(sink, "number", request->number);
	put_unsigned(sink, "state", rc != 0 ? REFUSED : job.is_running ? RUNNING : DONE);
	put_result(sink, rc != 0 ? rc : job.is_running ? 0 : job.result);
	if (rc == 0 && !job.is_running) {
		put_fields(sink);
	}
	(void)k_mutex_unlock(&mutex);
	return 0;
}

static uint32_t checksum(uint32_t offset, const uint8_t *data, uint32_t size)
{
	uint8_t place[sizeof(offset)];
	uint32_t crc;

	sys_put_le32(offset, place);
	crc = crc32_ieee_update(0U, upload.digest, CHECKED_DIGEST);
	crc = crc32_ieee_update(crc, place, sizeof(place));
	return crc32_ieee_update(crc, data, size);
}

int opwest_bundle_put_part(uint32_t offset, const uint8_t *data, uint32_t size, uint32_t check_sum,
			   const struct opwest_bundle_sink *sink)
{
	uint32_t next = 0;
	int rc;

	(void)k_mutex_lock(&mutex, K_FOREVER);
	if (served == NULL) {
		(void)k_mutex_unlock(&mutex);
		return -EACCES;
	}
	if (job.is_running) {
		rc = -EBUSY;
	} else if (!upload.is_begun) {
		rc = -EPERM;
	} else if (checksum(offset, data, size) != check_sum) {
		rc = -EILSEQ;
	} else {
		rc = opwest_bundles_write(served, offset, data, size, &next);
	}
	put_unsigned(sink, "at", offset);
	put_unsigned(sink, "off", next);
	put_result(sink, rc);
	(void)k_mutex_unlock(&mutex);
	return 0;
}

static int start(void)
{
	static const struct k_work_queue_config config = {.name = "opwest_bundle"};

	k_work_queue_init(&queue);
	k_work_init(&job.work, work);
	k_work_queue_start(&queue, stack, K_THREAD_STACK_SIZEOF(stack),
			   CONFIG_OPWEST_BUNDLE_THREAD_PRIORITY, &config);
	return 0;
}

SYS_INIT(start, APPLICATION, CONFIG_APPLICATION_INIT_PRIORITY);

/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include <zephyr/init.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/byteorder.h>
#include <zephyr/sys/crc.h>
#include <zephyr/sys/util.h>

#include <opwest/errors.h>

#include "jobs_internal.h"
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
	struct opwest_bundle_findings findings;
} job;

void opwest_bundles_serve(struct opwest_bundles *bundles)
{
	(void)k_mutex_lock(&mutex, K_FOREVER);
	served = bundles != NULL && bundles->started ? bundles : NULL;
	(void)k_mutex_unlock(&mutex);
}

static void put_unsigned(const struct opwest_bundle_sink *sink, const char *key, uint64_t value)
{
	sink->put_unsigned(sink->writer, key, value);
}

static void put_result(const struct opwest_bundle_sink *sink, int result)
{
	sink->put_signed(sink->writer, "result", result);
	sink->put_text(sink->writer, "error", opwest_error_name(result));
}

static void work(struct k_work *item)
{
	int result;

	ARG_UNUSED(item);

	memset(&job.findings, 0, sizeof(job.findings));
	result = opwest_bundle_execute(job.bundles, &job.request, job.data, &job.findings);
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
		(void)k_condvar_wait(&ended, &mutex, milliseconds < 0 ? K_FOREVER : K_MSEC(left));
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
		opwest_bundle_put_findings(sink, job.request.job, job.result, &job.findings);
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

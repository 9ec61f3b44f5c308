/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief Shared by shell and MCUmgr group: jobs on a thread of their own, and parts of uploads.
 *
 * A host starts a job and repeats the same request until it is done, so that lost and repeated
 * requests and responses are harmless, and no response has to wait for an erase or a run.
 */
#ifndef OPWEST_BUNDLE_SERVICE_INTERNAL_H_
#define OPWEST_BUNDLE_SERVICE_INTERNAL_H_

#include <stdbool.h>
#include <stdint.h>

#include <opwest/bundle_service.h>

/** Bytes of the longest part of a tensor in a job. */
#define OPWEST_BUNDLE_JOB_DATA 512U

/** The longest wait for a job before the response that it is not done, milliseconds. */
#define OPWEST_BUNDLE_WAIT_MS 200

/** The jobs. */
enum opwest_bundle_job {
	/** Read the records: opwest_bundles_state(). */
	OPWEST_BUNDLE_JOB_STATE = 0,
	/** Describe a slot: opwest_bundles_list(). */
	OPWEST_BUNDLE_JOB_LIST = 1,
	/** Erase a slot and begin an upload, or continue it: opwest_bundles_begin(). */
	OPWEST_BUNDLE_JOB_BEGIN = 2,
	OPWEST_BUNDLE_JOB_INSTALL = 3,
	OPWEST_BUNDLE_JOB_CONFIRM = 4,
	/** Return to the previous model: opwest_bundles_roll_back(). */
	OPWEST_BUNDLE_JOB_ROLL_BACK = 5,
	/** Compare the results of steps with those in the bundle: opwest_bundles_check_steps(). */
	OPWEST_BUNDLE_JOB_STEPS = 6,
	/** Compare a part of a tensor with given bytes: opwest_bundles_check_part(). */
	OPWEST_BUNDLE_JOB_PART = 7,
	OPWEST_BUNDLE_JOBS = 8,
};

/** A request for a job. */
struct opwest_bundle_request {
	/** enum opwest_bundle_job */
	uint32_t job;
	/** Identifies the host: a random number. */
	uint32_t session;
	/** The number of the job, which increases within a session; 0: a job without repeats. */
	uint32_t number;
	/** Not 0: do not start it, only return its result. */
	uint32_t polls;
	/**
	 * LIST, BEGIN: the slot; OPWEST_BUNDLE_NO_SLOT in BEGIN: the one for the next upload.
	 * ROLL_BACK: that of the current model, so that a request repeated after a restart does
	 * not roll back twice; OPWEST_BUNDLE_NO_SLOT: whatever the current model is.
	 */
	uint32_t slot;
	/** BEGIN: bytes of the file. */
	uint32_t size;
	/** BEGIN: its SHA-512. */
	uint8_t digest[OPWEST_BUNDLE_DIGEST_SIZE];
	/** PART: see opwest_bundles_check_part(). */
	uint32_t point;
	uint32_t buffer;
	uint32_t offset;
	const uint8_t *data;
	uint32_t data_size;
};

/** The response of a transport, which defines the structure. */
struct opwest_bundle_writer;

/** Receives the fields of a response. */
struct opwest_bundle_sink {
	void (*put_unsigned)(struct opwest_bundle_writer *writer, const char *key, uint64_t value);
	void (*put_signed)(struct opwest_bundle_writer *writer, const char *key, int32_t value);
	/** Printable ASCII characters. */
	void (*put_text)(struct opwest_bundle_writer *writer, const char *key, const char *text);
	void (*put_bytes)(struct opwest_bundle_writer *writer, const char *key, const uint8_t *data,
			  uint32_t size);
	/** That of the transport; may be NULL. */
	struct opwest_bundle_writer *writer;
};

/**
 * @brief Put the versions of the commands and of the format, and the number of slots.
 *
 * @retval 0       Put.
 * @retval -EACCES The application serves no bundles.
 */
int opwest_bundle_put_info(const struct opwest_bundle_sink *sink);

/**
 * @brief Start a job, or find the one with the same session and number; put its result or that it
 * is not done.
 *
 * The field `state` is 0 while the job runs, 1 after its end, 2 if it was not begun; `result` is 0
 * or a negative errno. It is not begun during another job (-EBUSY), with a number below that of the
 * session's latest job (-EALREADY), with `polls` if it is not the latest one (-ENOENT), and with
 * invalid arguments (-EINVAL, -EMSGSIZE).
 *
 * @param request      The request.
 * @param milliseconds The longest wait for the end of the job; negative: without a limit.
 * @param sink         Receives the fields.
 *
 * @retval 0       Put.
 * @retval -EACCES The application serves no bundles.
 */
int opwest_bundle_put_job(const struct opwest_bundle_request *request, int32_t milliseconds,
			  const struct opwest_bundle_sink *sink);

/**
 * @brief Write a part of an upload; put the offset of the next one.
 *
 * @param offset The offset of @p data in the file.
 * @param data   The bytes.
 * @param size   Their number.
 * @param check  CRC-32 of the first 8 bytes of the file's SHA-512, @p offset in 4 bytes,
 *               little-endian, and @p data: detects damaged parts and parts of another file.
 * @param sink   Receives the fields: `result` is -EILSEQ for a wrong @p check, -EPERM without an
 *               upload, -EBUSY during a job.
 *
 * @retval 0       Put.
 * @retval -EACCES The application serves no bundles.
 */
int opwest_bundle_put_part(uint32_t offset, const uint8_t *data, uint32_t size, uint32_t check,
			   const struct opwest_bundle_sink *sink);

#endif /* OPWEST_BUNDLE_SERVICE_INTERNAL_H_ */

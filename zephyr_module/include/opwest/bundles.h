/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief Models in slots of flash: sessions that run them, installation, fallback.
 *
 * One struct opwest_bundles owns the slots. Threads run the current model through sessions, each
 * with its own memory. An installation writes an inactive slot, verifies it, waits until no run is
 * in progress, runs the golden vectors of the new model, and makes it the current one. Until it is
 * confirmed, a failure or a reset makes the previous one the current one again.
 *
 * See docs/bundles.md.
 */
#ifndef OPWEST_BUNDLES_H_
#define OPWEST_BUNDLES_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opwest/bundle.h>
#include <opwest/bundle_format.h>
#include <opwest/bundle_port.h>
#include <opwest/port_sync.h>

#ifdef __cplusplus
extern "C" {
#endif

/** No slot. */
#define OPWEST_BUNDLE_NO_SLOT      UINT8_MAX
/** The largest number of devices of a bundle. */
#define OPWEST_BUNDLE_MOST_DEVICES 8U
/** The largest number of pools of a bundle. */
#define OPWEST_BUNDLE_MOST_POOLS   8U
/** The number of models whose lowest accepted version is recorded. */
#define OPWEST_BUNDLE_FLOORS       8U
/** Bytes of a SHA-512. */
#define OPWEST_BUNDLE_DIGEST_SIZE  64U

/** A device of the firmware that bundles can use. */
struct opwest_bundle_device {
	/** The type of the manifest's devices: "ethos_u". */
	const char *type;
	/** The name in the manifest, which is preferred; may be NULL. */
	const char *name;
	const struct device *dev;
};

/** Memory for a pool with a given name. */
struct opwest_bundle_pool {
	const char *name;
	uint8_t *memory;
	/** Bytes. */
	uint32_t size;
};

/** Memory for a workspace and its pools. */
struct opwest_bundle_memory {
	/** The workspace, and the pools that are not listed in @ref pools. */
	uint8_t *memory;
	/** Bytes. */
	uint32_t size;
	/** @ref pool_count pools with a memory of their own; may be NULL. */
	const struct opwest_bundle_pool *pools;
	uint8_t pool_count;
};

/** What the application provides: constant. */
struct opwest_bundles_config {
	const struct opwest_bundle_storage *storage;
	/** @ref key_count trusted keys. */
	const struct opwest_bundle_key *keys;
	/** The functions for images; usually &opwest_bundle_host. */
	const struct opwest_host *host;
	/** @ref device_count devices, in any order. */
	const struct opwest_bundle_device *devices;
	/**
	 * Memory for the golden vectors of a new model. Without it they run in that of the first
	 * session, and sessions lose the state of their models even if the new one is refused.
	 */
	struct opwest_bundle_memory trial;
	uint8_t key_count;
	uint8_t device_count;
	/** Older versions than the newest confirmed one are installed, too. */
	bool allows_downgrade;
	/** A new model whose golden vectors agree is not confirmed until opwest_bundles_confirm().
	 */
	bool waits_for_confirmation;
	/**
	 * The number of starts without opwest_bundles_healthy() after which the previous model is
	 * used; 0: starts are not counted.
	 */
	uint8_t crash_limit;
};

struct opwest_bundles;

/**
 * Runs the current model in its own memory. One thread at a time uses it: its functions return
 * -EBUSY without an effect while another one runs.
 */
struct opwest_session {
	/** Set by the application. */
	struct opwest_bundle_memory memory;
	/** @cond INTERNAL_HIDDEN */
	struct opwest_bundles *bundles;
	struct opwest_session *next;
	struct opwest_bundle_workspace *workspace;
	const struct device *devices[OPWEST_BUNDLE_MOST_DEVICES];
	/** The model that the workspace is open for; 0: none. */
	uint32_t generation;
	/** That of the latest run: the model may be replaced after it. */
	struct opwest_status status;
	/** Set while a function of the session runs. */
	opwest_port_flag_t running;
	bool has_status;
	bool held;
	/** @endcond */
};

/** The state that survives a reset; one record of the storage. */
struct opwest_bundle_record {
	/** The version of this structure. */
	uint32_t version;
	/** The slot of the confirmed model, or OPWEST_BUNDLE_NO_SLOT. */
	uint8_t active;
	/** The slot of a model that is not confirmed yet, or OPWEST_BUNDLE_NO_SLOT. */
	uint8_t trying;
	/** The slot of the model before the active one, or OPWEST_BUNDLE_NO_SLOT. */
	uint8_t previous;
	/** Starts since the last opwest_bundles_healthy(). */
	uint8_t crashes;
	/** enum opwest_bundle_fault: why the latest trial was ended. */
	uint8_t fault;
	uint8_t reserved[3];
};

/** The lowest accepted version of a model; one record of the storage each. */
struct opwest_bundle_floor {
	char name[OPWEST_BUNDLE_NAME_SIZE];
	uint32_t version;
};

/** The manager of slots. Its members are private. */
struct opwest_bundles {
	/** @cond INTERNAL_HIDDEN */
	const struct opwest_bundles_config *config;
	/** One installation, confirmation or roll-back at a time. */
	struct opwest_port_mutex installation;
	/** Protects the members below. */
	struct opwest_port_mutex lock;
	struct opwest_port_sem drained;
	struct opwest_port_sem resumed;
	struct opwest_session *sessions;
	const struct opwest_bundle_descriptor *current;
	struct opwest_bundle_record record;
	struct opwest_bundle_header header;
	uint32_t generation;
	uint32_t running;
	uint32_t waiting;
	uint8_t slot;
	bool switching;
	bool started;
	/** The upload in progress. */
	uint8_t upload_slot;
	uint8_t rest_size;
	uint32_t upload_size;
	uint32_t upload_offset;
	uint8_t digest[OPWEST_BUNDLE_DIGEST_SIZE];
	uint8_t rest[OPWEST_BUNDLE_MOST_WRITE_SIZE];
	/** @endcond */
};

/** A slot, for lists. */
struct opwest_bundle_info {
	/** Valid if @ref verdict is OPWEST_BUNDLE_GOOD or a fault behind the header. */
	struct opwest_bundle_header header;
	/** The checks that need no run: format, signature, slot, ABI, downgrade. */
	struct opwest_bundle_verdict verdict;
	uint64_t address;
	uint32_t size;
	bool is_active;
	bool is_trying;
	bool is_previous;
	/** The next upload goes here. */
	bool is_target;
};

/** The functions of this firmware for images. */
extern const struct opwest_host opwest_bundle_host;

/**
 * @brief Read the records, end an interrupted trial, and make the active model the current one.
 *
 * Call it once, before all other functions.
 *
 * @param bundles The manager, zeroed.
 * @param config  What the application provides; must exist as long as the manager.
 *
 * @retval 0       A model is current.
 * @retval -ENOENT No slot has a usable model; one can be installed.
 * @retval -EINVAL The configuration is invalid.
 * @return Another negative errno of the storage
 */
int opwest_bundles_start(struct opwest_bundles *bundles,
			 const struct opwest_bundles_config *config);

/**
 * @brief Add a session.
 *
 * Not between opwest_session_hold() and opwest_session_release() of the same thread.
 *
 * @param bundles The manager, started.
 * @param session The session with its memory; must exist as long as the manager.
 *
 * @retval 0       Added.
 * @retval -ENOMEM The memory is too small for the current model: see opwest_bundles_needs().
 * @retval -EPERM  The manager is not started.
 */
int opwest_session_add(struct opwest_bundles *bundles, struct opwest_session *session);

/**
 * @brief Run the current model once.
 *
 * Waits while a new model is being tried. Opens the workspace if the model is new.
 *
 * @param session        The session.
 * @param interface_hash That of the buffers: `<MODEL>_BUNDLE_INTERFACE`, or of the header.
 * @param inputs         A pointer for each input of the model, in order.
 * @param outputs        A pointer for each output.
 *
 * @retval 0           The outputs are written.
 * @retval -EPERM      The session is not added.
 * @retval -ENOENT     There is no current model.
 * @retval -EPROTOTYPE The current model has another interface.
 * @retval -EINVAL     An argument is NULL or misaligned, or its memory overlaps another one or that
 *                     of the session.
 * @retval -EBUSY      The model is held: use opwest_session_run_held(). Or another thread uses the
 *                     session.
 * @return Another negative errno of open or run: see opwest_session_status()
 */
int opwest_session_run(struct opwest_session *session, uint64_t interface_hash,
		       const void *const *inputs, void *const *outputs);

/**
 * @brief Keep the current model until opwest_session_release().
 *
 * For code that reads the description of the model before it runs it. An installation waits for
 * the release. Until then the thread calls only opwest_session_run_held(), opwest_session_reset(),
 * opwest_session_status(), opwest_bundles_state() and opwest_session_release(): all other functions
 * of the manager may wait for an installation, which waits for this thread.
 *
 * @param session    The session.
 * @param descriptor Set to the current model.
 * @param header     Set to its header; may be NULL.
 *
 * @retval 0       Held, and the workspace is open.
 * @retval -EPERM  The session is not added.
 * @retval -ENOENT There is no current model.
 * @retval -EBUSY  It is held already, or another thread uses the session.
 * @return Another negative errno of open
 */
int opwest_session_hold(struct opwest_session *session,
			const struct opwest_bundle_descriptor **descriptor,
			const struct opwest_bundle_header **header);

/** @brief Run the held model; see opwest_session_run(). -EPERM without opwest_session_hold(). */
int opwest_session_run_held(struct opwest_session *session, const void *const *inputs,
			    void *const *outputs);

/** @brief Give the model back; no effect without opwest_session_hold(). */
void opwest_session_release(struct opwest_session *session);

/** @brief Reset the state of the model of a session; 0 without state. */
int opwest_session_reset(struct opwest_session *session);

/** @brief Return the status of the latest run of a session; -EPERM before the first one. */
int opwest_session_status(struct opwest_session *session, struct opwest_status *status);

/**
 * @brief Return the memory that a bundle needs in a session.
 *
 * @param header The header.
 *
 * @return Bytes, for memory with any alignment, if no pool has a memory of its own and no output is
 *         aligned to more than 64 bytes. Includes the outputs, for the memory of the trial
 */
uint32_t opwest_bundles_needs(const struct opwest_bundle_header *header);

/**
 * @brief Begin an upload: erase the slot for it.
 *
 * The same size and digest as those of the upload in progress continue it.
 *
 * @param bundles The manager.
 * @param slot    The slot; OPWEST_BUNDLE_NO_SLOT: the one that opwest_bundles_list() marks.
 * @param size    Bytes of the file.
 * @param digest  The SHA-512 of the file.
 * @param offset  Set to the offset of the next byte: 0 for a new upload.
 *
 * @retval 0       Ready.
 * @retval -EBUSY  The slot is in use, or a trial is not confirmed.
 * @retval -EFBIG  The file is larger than the slot.
 * @retval -ENOENT There is no such slot.
 * @return Another negative errno of the storage
 */
int opwest_bundles_begin(struct opwest_bundles *bundles, uint8_t slot, uint32_t size,
			 const uint8_t digest[OPWEST_BUNDLE_DIGEST_SIZE], uint32_t *offset);

/**
 * @brief Write the next bytes of an upload.
 *
 * Bytes at another offset than the next one change nothing: a lost or repeated part.
 *
 * @param bundles The manager.
 * @param offset  The offset of @p data in the file.
 * @param data    The bytes.
 * @param size    Their number.
 * @param next    Set to the offset of the next byte.
 *
 * @retval 0       Written, or ignored.
 * @retval -EPERM  There is no upload.
 * @retval -EFBIG  The part ends behind the file.
 * @return Another negative errno of the storage
 */
int opwest_bundles_write(struct opwest_bundles *bundles, uint32_t offset, const uint8_t *data,
			 uint32_t size, uint32_t *next);

/**
 * @brief Verify the uploaded bundle, try it, and make it the current model.
 *
 * In this order: read-back, format, signature, slot, kind, ABI record, descriptor, devices, memory
 * of all sessions, version, end of the file; then runs are drained, and the golden vectors run.
 *
 * @param bundles The manager.
 * @param verdict Set to the reason of a refusal.
 *
 * @retval 0        It is the current model; confirmed unless waits_for_confirmation.
 * @retval -EPERM   The upload is not complete.
 * @retval -EBUSY   A trial is not confirmed.
 * @retval -EBADMSG It is refused: see @p verdict. The previous model is current.
 * @return Another negative errno of the storage
 */
int opwest_bundles_install(struct opwest_bundles *bundles, struct opwest_bundle_verdict *verdict);

/**
 * @brief Confirm the model that is being tried.
 *
 * @retval 0      It is the active one.
 * @retval -EPERM No model is being tried.
 * @return Another negative errno of the storage
 */
int opwest_bundles_confirm(struct opwest_bundles *bundles);

/**
 * @brief Make the previous model the current one.
 *
 * Ends a trial that is not confirmed: the active model is the current one again. Without a trial,
 * the previous model is tried like a new one, and confirmed.
 *
 * @param bundles The manager.
 * @param verdict Set to the reason of a refusal.
 *
 * @retval 0        It is the current model.
 * @retval -ENOENT  There is no previous one; a trial has ended nevertheless: no model is current.
 * @retval -EBADMSG It is refused, as by an installation: a confirmed model with a newer version of
 *                  the same name prevents it, unless allows_downgrade.
 */
int opwest_bundles_roll_back(struct opwest_bundles *bundles, struct opwest_bundle_verdict *verdict);

/** @brief Report that the application works with the current model: ends the count of crashes. */
int opwest_bundles_healthy(struct opwest_bundles *bundles);

/**
 * @brief Describe a slot.
 *
 * @retval 0       Described.
 * @retval -ENOENT There is no such slot.
 */
int opwest_bundles_list(struct opwest_bundles *bundles, uint8_t slot,
			struct opwest_bundle_info *info);

/** @brief Return the state of the records. */
void opwest_bundles_state(struct opwest_bundles *bundles, struct opwest_bundle_record *record);

/** The first difference of a step. */
struct opwest_bundle_difference {
	/** The name of the operator and of the tensor; NULL without a difference. */
	const char *operator_name;
	const char *tensor;
	uint16_t step;
	/** The first different element, and the number of different ones. */
	uint32_t element;
	uint32_t count;
};

/**
 * @brief Run golden vector 0 of the current model and compare the results of its steps.
 *
 * @param bundles The manager.
 * @param found   Set to the first step that differs.
 *
 * @retval 0        All are equal.
 * @retval -ENOTSUP The bundle has no results of steps.
 * @retval -EILSEQ  A step differs.
 * @return Another negative errno of run
 */
int opwest_bundles_check_steps(struct opwest_bundles *bundles,
			       struct opwest_bundle_difference *found);

/**
 * @brief Run golden vector 0 and compare a part of one tensor with bytes of the caller.
 *
 * @param bundles  The manager.
 * @param point    The point after which the tensor is complete.
 * @param buffer   Index into the model's buffers.
 * @param offset   The offset of the part, bytes: a multiple of the size of an element.
 * @param expected The bytes.
 * @param size     Their number.
 * @param found    Set to the difference, if any.
 *
 * @retval 0        They are equal.
 * @retval -ENOTSUP The image does not call the firmware after steps.
 * @retval -ENOENT  There is no such point or buffer, or the part is outside of it.
 * @retval -EILSEQ  They differ.
 * @return Another negative errno of run
 */
int opwest_bundles_check_part(struct opwest_bundles *bundles, uint16_t point, uint16_t buffer,
			      uint32_t offset, const uint8_t *expected, uint32_t size,
			      struct opwest_bundle_difference *found);

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_BUNDLES_H_ */

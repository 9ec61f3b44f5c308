/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The MCUmgr command group with which a host runs the models of this image: CBOR maps over any SMP
 * transport. Models and tensors have indices; docs/contributing/protocols.md lists the commands.
 */
#include <errno.h>
#include <string.h>

#include <zephyr/devicetree.h>
#include <zephyr/mgmt/mcumgr/mgmt/handlers.h>
#include <zephyr/mgmt/mcumgr/mgmt/mgmt.h>
#include <zephyr/mgmt/mcumgr/smp/smp.h>
#include <zephyr/sys/util.h>

#include <mgmt/mcumgr/util/zcbor_bulk.h>
#include <zcbor_common.h>
#include <zcbor_decode.h>
#include <zcbor_encode.h>

#include "service_internal.h"

#ifdef CONFIG_MCUMGR_TRANSPORT_UART
BUILD_ASSERT(DT_HAS_CHOSEN(zephyr_uart_mcumgr),
	     "the devicetree has no chosen zephyr,uart-mcumgr; it can be the UART of the console");
#endif

/* Commands of the group. */
enum {
	COMMAND_MODEL = 0,
	COMMAND_TENSOR = 1,
	COMMAND_DATA = 2,
	COMMAND_ACTION = 3,
	COMMAND_MEASURES = 4,
	COMMAND_POINT = 5,
	COMMAND_UNTIL = 6,
	COMMAND_CALL = 7,
};

/* The size of a response without the data: header, map, keys, an offset and a length. */
#define AROUND_DATA 48
#define CHUNK       (CONFIG_MCUMGR_TRANSPORT_NETBUF_SIZE - AROUND_DATA)
BUILD_ASSERT(CHUNK > 0, "CONFIG_MCUMGR_TRANSPORT_NETBUF_SIZE is too small for data");

/* The numbers in requests. */
struct request {
	uint32_t model;
	uint32_t tensor;
	uint32_t offset;
	uint32_t action;
	uint32_t point;
#ifdef CONFIG_OPWEST_SERVICE_CALL
	uint32_t operator_index;
	uint32_t device;
#endif
	struct zcbor_string data;
};

/* Every command begins with it: a locked service does not answer. */
static int decode(struct smp_streamer *ctxt, struct request *request)
{
	struct zcbor_map_decode_key_val keys[] = {
		ZCBOR_MAP_DECODE_KEY_DECODER("model", zcbor_uint32_decode, &request->model),
		ZCBOR_MAP_DECODE_KEY_DECODER("tensor", zcbor_uint32_decode, &request->tensor),
		ZCBOR_MAP_DECODE_KEY_DECODER("off", zcbor_uint32_decode, &request->offset),
		ZCBOR_MAP_DECODE_KEY_DECODER("do", zcbor_uint32_decode, &request->action),
		ZCBOR_MAP_DECODE_KEY_DECODER("point", zcbor_uint32_decode, &request->point),
#ifdef CONFIG_OPWEST_SERVICE_CALL
		ZCBOR_MAP_DECODE_KEY_DECODER("operator", zcbor_uint32_decode,
					     &request->operator_index),
		ZCBOR_MAP_DECODE_KEY_DECODER("device", zcbor_uint32_decode, &request->device),
#endif
		ZCBOR_MAP_DECODE_KEY_DECODER("data", zcbor_bstr_decode, &request->data),
	};
	size_t decoded;

	*request = (struct request){0};
	if (!opwest_service_is_permitted()) {
		return MGMT_ERR_EACCESSDENIED;
	}
	if (zcbor_map_decode_bulk(ctxt->reader->zs, keys, ARRAY_SIZE(keys), &decoded) != 0 ||
	    request->tensor > UINT16_MAX) {
		return MGMT_ERR_EINVAL;
	}
	return MGMT_ERR_EOK;
}

static bool put_text(zcbor_state_t *zse, const char *text)
{
	return zcbor_tstr_encode_ptr(zse, text, strlen(text));
}

static int answered(bool ok)
{
	return ok ? MGMT_ERR_EOK : MGMT_ERR_EMSGSIZE;
}

static int refused(int error)
{
	switch (error) {
	case -ENOENT:
		return MGMT_ERR_ENOENT;
	case -EPERM:
		return MGMT_ERR_EBADSTATE;
	default:
		return MGMT_ERR_EINVAL;
	}
}

/* Put what the options of the service add to the description of a model. */
static bool put_optional(zcbor_state_t *zse, const struct opwest_served_model *served)
{
	(void)zse;
	(void)served;
#ifdef CONFIG_OPWEST_CHECK_STEPS
	if (!zcbor_tstr_put_lit(zse, "buffers") ||
	    !zcbor_uint32_put(zse, served->details->buffer_count)) {
		return false;
	}
#endif
#ifdef CONFIG_OPWEST_SERVICE_CALL
	if (!zcbor_tstr_put_lit(zse, "arguments") || !zcbor_uint32_put(zse, 1)) {
		return false;
	}
#endif
	return true;
}

static int read_model(struct smp_streamer *ctxt)
{
	zcbor_state_t *zse = ctxt->writer->zs;
	const struct opwest_served_model *served;
	struct request request;
	int rc;

	rc = decode(ctxt, &request);
	if (rc != MGMT_ERR_EOK) {
		return rc;
	}
	served = opwest_service_model(request.model);
	if (served == NULL) {
		return MGMT_ERR_ENOENT;
	}
	return answered(zcbor_tstr_put_lit(zse, "service") &&
			zcbor_uint32_put(zse, OPWEST_SERVICE_VERSION) &&
			zcbor_tstr_put_lit(zse, "models") &&
			zcbor_uint32_put(zse, opwest_service_model_count()) &&
			zcbor_tstr_put_lit(zse, "name") && put_text(zse, served->model->name) &&
			zcbor_tstr_put_lit(zse, "inputs") &&
			zcbor_uint32_put(zse, served->model->input_count) &&
			zcbor_tstr_put_lit(zse, "outputs") &&
			zcbor_uint32_put(zse, served->model->output_count) &&
			put_optional(zse, served));
}

static int read_tensor(struct smp_streamer *ctxt)
{
	zcbor_state_t *zse = ctxt->writer->zs;
	const struct opwest_served_model *served;
	const struct opwest_tensor *tensor;
	struct request request;
	bool ok;
	int rc;

	rc = decode(ctxt, &request);
	if (rc != MGMT_ERR_EOK) {
		return rc;
	}
	served = opwest_service_model(request.model);
	tensor = served != NULL ? opwest_service_tensor(served, (uint16_t)request.tensor) : NULL;
	if (tensor == NULL) {
		return MGMT_ERR_ENOENT;
	}
	ok = zcbor_tstr_put_lit(zse, "name") && put_text(zse, tensor->name) &&
	     zcbor_tstr_put_lit(zse, "dtype") && put_text(zse, opwest_dtype_name(tensor->dtype)) &&
	     zcbor_tstr_put_lit(zse, "size") && zcbor_uint32_put(zse, tensor->size) &&
	     zcbor_tstr_put_lit(zse, "shape") && zcbor_list_start_encode(zse, tensor->rank);
	for (uint8_t i = 0; i < tensor->rank; i++) {
		ok = ok && zcbor_uint32_put(zse, tensor->shape[i]);
	}
	return answered(ok && zcbor_list_end_encode(zse, tensor->rank));
}

static int read_data(struct smp_streamer *ctxt)
{
	zcbor_state_t *zse = ctxt->writer->zs;
	const struct opwest_served_model *served;
	struct request request;
	const uint8_t *data;
	uint32_t size = CHUNK;
	bool ok;
	int rc;

	rc = decode(ctxt, &request);
	if (rc != MGMT_ERR_EOK) {
		return rc;
	}
	served = opwest_service_model(request.model);
	if (served == NULL) {
		return MGMT_ERR_ENOENT;
	}
	opwest_service_lock();
	rc = opwest_service_read(served, (uint16_t)request.tensor, request.offset, &data, &size);
	ok = rc == 0 && zcbor_tstr_put_lit(zse, "off") && zcbor_uint32_put(zse, request.offset) &&
	     zcbor_tstr_put_lit(zse, "data") &&
	     zcbor_bstr_encode_ptr(zse, (const char *)data, size);
	opwest_service_unlock();
	return rc != 0 ? refused(rc) : answered(ok);
}

static int write_data(struct smp_streamer *ctxt)
{
	zcbor_state_t *zse = ctxt->writer->zs;
	const struct opwest_served_model *served;
	struct request request;
	int rc;

	rc = decode(ctxt, &request);
	if (rc != MGMT_ERR_EOK) {
		return rc;
	}
	served = opwest_service_model(request.model);
	if (served == NULL) {
		return MGMT_ERR_ENOENT;
	}
	opwest_service_lock();
	rc = opwest_service_write(served, (uint16_t)request.tensor, request.offset,
				  request.data.value, (uint32_t)request.data.len);
	opwest_service_unlock();
	if (rc != 0) {
		return refused(rc);
	}
	return answered(zcbor_tstr_put_lit(zse, "off") &&
			zcbor_uint32_put(zse, request.offset + (uint32_t)request.data.len));
}

static bool put_report(zcbor_state_t *zse, const struct opwest_service_report *report)
{
	return zcbor_tstr_put_lit(zse, "result") && zcbor_int32_put(zse, report->result) &&
	       zcbor_tstr_put_lit(zse, "error") && put_text(zse, report->error) &&
	       zcbor_tstr_put_lit(zse, "code") && zcbor_int32_put(zse, report->code) &&
	       zcbor_tstr_put_lit(zse, "hook") && put_text(zse, report->hook) &&
	       zcbor_tstr_put_lit(zse, "device") && put_text(zse, report->device) &&
	       zcbor_tstr_put_lit(zse, "operator") && put_text(zse, report->operator_name) &&
	       zcbor_tstr_put_lit(zse, "step") && zcbor_int32_put(zse, report->step) &&
	       zcbor_tstr_put_lit(zse, "ns") && zcbor_uint64_put(zse, report->nanoseconds);
}

static int write_action(struct smp_streamer *ctxt)
{
	zcbor_state_t *zse = ctxt->writer->zs;
	const struct opwest_served_model *served;
	struct opwest_service_report report;
	struct request request;
	int rc;

	rc = decode(ctxt, &request);
	if (rc != MGMT_ERR_EOK) {
		return rc;
	}
	if (request.action >= OPWEST_SERVICE_ACTIONS) {
		return MGMT_ERR_EINVAL;
	}
	served = opwest_service_model(request.model);
	if (served == NULL) {
		return MGMT_ERR_ENOENT;
	}
	opwest_service_lock();
	opwest_service_do(served, (enum opwest_service_action)request.action, &report);
	opwest_service_unlock();
	return answered(put_report(zse, &report));
}

#ifdef CONFIG_OPWEST_CHECK_STEPS
static int write_until(struct smp_streamer *ctxt)
{
	zcbor_state_t *zse = ctxt->writer->zs;
	const struct opwest_served_model *served;
	struct opwest_service_report report;
	struct request request;
	int rc;

	rc = decode(ctxt, &request);
	if (rc != MGMT_ERR_EOK) {
		return rc;
	}
	served = opwest_service_model(request.model);
	if (served == NULL) {
		return MGMT_ERR_ENOENT;
	}
	opwest_service_lock();
	opwest_service_run_until(served, request.point, &report);
	opwest_service_unlock();
	return answered(zcbor_tstr_put_lit(zse, "stopped") &&
			zcbor_uint32_put(zse, report.stopped ? 1U : 0U) &&
			put_report(zse, &report));
}
#endif

#ifdef CONFIG_OPWEST_SERVICE_CALL
static int write_call(struct smp_streamer *ctxt)
{
	const struct opwest_served_model *served;
	struct opwest_service_report report;
	struct request request;
	int rc;

	rc = decode(ctxt, &request);
	if (rc != MGMT_ERR_EOK) {
		return rc;
	}
	served = opwest_service_model(request.model);
	if (served == NULL) {
		return MGMT_ERR_ENOENT;
	}
	opwest_service_lock();
	opwest_service_do_call(served, request.operator_index, request.device, &report);
	opwest_service_unlock();
	return answered(put_report(ctxt->writer->zs, &report));
}
#endif

#ifdef CONFIG_OPWEST_PROFILE
static int read_measures(struct smp_streamer *ctxt)
{
	zcbor_state_t *zse = ctxt->writer->zs;
	const struct opwest_served_model *served;
	struct request request;
	uint32_t used = 0U;
	uint32_t size = 0U;
	int rc;

	rc = decode(ctxt, &request);
	if (rc != MGMT_ERR_EOK) {
		return rc;
	}
	served = opwest_service_model(request.model);
	if (served == NULL) {
		return MGMT_ERR_ENOENT;
	}
	(void)opwest_service_stack(&used, &size);
	return answered(zcbor_tstr_put_lit(zse, "points") &&
			zcbor_uint32_put(zse, served->profile->count) &&
			zcbor_tstr_put_lit(zse, "hz") &&
			zcbor_uint64_put(zse, opwest_profile_frequency()) &&
			zcbor_tstr_put_lit(zse, "used") && zcbor_uint32_put(zse, used) &&
			zcbor_tstr_put_lit(zse, "stack") && zcbor_uint32_put(zse, size));
}

static int read_point(struct smp_streamer *ctxt)
{
	zcbor_state_t *zse = ctxt->writer->zs;
	const struct opwest_served_model *served;
	const struct opwest_point *point;
	struct opwest_measure measure;
	struct request request;
	int rc;

	rc = decode(ctxt, &request);
	if (rc != MGMT_ERR_EOK) {
		return rc;
	}
	served = opwest_service_model(request.model);
	if (served == NULL || request.point >= served->profile->count) {
		return MGMT_ERR_ENOENT;
	}
	point = &served->profile->points[request.point];
	opwest_service_lock();
	measure = served->profile->measures[request.point];
	opwest_service_unlock();
	return answered(zcbor_tstr_put_lit(zse, "kind") &&
			put_text(zse, opwest_point_kind_name(point->kind)) &&
			zcbor_tstr_put_lit(zse, "name") && put_text(zse, point->name) &&
			zcbor_tstr_put_lit(zse, "step") && zcbor_uint32_put(zse, point->step) &&
			zcbor_tstr_put_lit(zse, "device") && zcbor_uint32_put(zse, point->device) &&
			zcbor_tstr_put_lit(zse, "runs") && zcbor_uint32_put(zse, measure.runs) &&
			zcbor_tstr_put_lit(zse, "last") && zcbor_uint64_put(zse, measure.last) &&
			zcbor_tstr_put_lit(zse, "min") && zcbor_uint64_put(zse, measure.min) &&
			zcbor_tstr_put_lit(zse, "max") && zcbor_uint64_put(zse, measure.max) &&
			zcbor_tstr_put_lit(zse, "total") && zcbor_uint64_put(zse, measure.total));
}
#endif

static const struct mgmt_handler handlers[] = {
	[COMMAND_MODEL] = {.mh_read = read_model},
	[COMMAND_TENSOR] = {.mh_read = read_tensor},
	[COMMAND_DATA] = {.mh_read = read_data, .mh_write = write_data},
	[COMMAND_ACTION] = {.mh_write = write_action},
#ifdef CONFIG_OPWEST_PROFILE
	[COMMAND_MEASURES] = {.mh_read = read_measures},
	[COMMAND_POINT] = {.mh_read = read_point},
#endif
#ifdef CONFIG_OPWEST_CHECK_STEPS
	[COMMAND_UNTIL] = {.mh_write = write_until},
#endif
#ifdef CONFIG_OPWEST_SERVICE_CALL
	[COMMAND_CALL] = {.mh_write = write_call},
#endif
};

static struct mgmt_group group = {
	.mg_handlers = handlers,
	.mg_handlers_count = ARRAY_SIZE(handlers),
	.mg_group_id = CONFIG_OPWEST_SERVICE_SMP_GROUP,
};

static void register_group(void)
{
	mgmt_register_group(&group);
}

MCUMGR_HANDLER_DEFINE(opwest_service, register_group);

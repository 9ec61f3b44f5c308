/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "jobs_internal.h"

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

static void put_record(const struct opwest_bundle_sink *sink,
		       const struct opwest_bundle_record *record)
{
	put_unsigned(sink, "active", record->active);
	put_unsigned(sink, "trying", record->trying);
	put_unsigned(sink, "previous", record->previous);
	put_unsigned(sink, "crashes", record->crashes);
	put_unsigned(sink, "fault", record->fault);
	put_text(sink, "fault_name", fault_name(record->fault));
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

static void put_slot(const struct opwest_bundle_sink *sink, const struct opwest_bundle_info *info)
{
	char name[OPWEST_BUNDLE_NAME_SIZE];

	put_unsigned(sink, "address", info->address);
	put_unsigned(sink, "size", info->size);
	put_unsigned(sink, "is",
		     (info->is_active ? 1U : 0U) | (info->is_trying ? 2U : 0U) |
			     (info->is_previous ? 4U : 0U) | (info->is_target ? 8U : 0U));
	put_verdict(sink, &info->verdict);
	if (!has_header(info)) {
		return;
	}
	copy_name(name, info->header.name);
	put_text(sink, "name", name);
	put_unsigned(sink, "version", info->header.version);
	put_unsigned(sink, "length", info->header.length);
	put_unsigned(sink, "kind", info->header.kind);
	put_unsigned(sink, "interface", info->header.interface_hash);
	put_bytes(sink, "model", info->header.model_hash, sizeof(info->header.model_hash));
}

static void put_difference(const struct opwest_bundle_sink *sink,
			   const struct opwest_bundle_findings *findings)
{
	put_text(sink, "operator", findings->operator_name);
	put_text(sink, "tensor", findings->tensor);
	put_unsigned(sink, "step", findings->difference.step);
	put_unsigned(sink, "element", findings->difference.element);
	put_unsigned(sink, "count", findings->difference.count);
}

void opwest_bundle_put_findings(const struct opwest_bundle_sink *sink, uint32_t job, int result,
				const struct opwest_bundle_findings *findings)
{
	switch (job) {
	case OPWEST_BUNDLE_JOB_STATE:
		put_record(sink, &findings->record);
		break;
	case OPWEST_BUNDLE_JOB_LIST:
		if (result == 0) {
			put_slot(sink, &findings->info);
		}
		break;
	case OPWEST_BUNDLE_JOB_BEGIN:
		put_unsigned(sink, "off", findings->offset);
		put_unsigned(sink, "slot", findings->slot);
		break;
	case OPWEST_BUNDLE_JOB_INSTALL:
	case OPWEST_BUNDLE_JOB_ROLL_BACK:
		put_verdict(sink, &findings->verdict);
		break;
	case OPWEST_BUNDLE_JOB_STEPS:
	case OPWEST_BUNDLE_JOB_PART:
		if (result == -EILSEQ) {
			put_difference(sink, findings);
		}
		break;
	default:
		break;
	}
}

static int begin(struct opwest_bundles *bundles, const struct opwest_bundle_request *request,
		 struct opwest_bundle_findings *findings)
{
	int rc;

	rc = opwest_bundles_begin(bundles, (uint8_t)request->slot, request->size, request->digest,
				  &findings->offset);
	findings->slot = rc == 0 ? bundles->upload_slot : OPWEST_BUNDLE_NO_SLOT;
	return rc;
}

static int check(struct opwest_bundles *bundles, const struct opwest_bundle_request *request,
		 const uint8_t *data, struct opwest_bundle_findings *findings)
{
	int rc;

	if (request->job == OPWEST_BUNDLE_JOB_STEPS) {
		rc = opwest_bundles_check_steps(bundles, &findings->difference);
	} else {
		rc = opwest_bundles_check_part(bundles, (uint16_t)request->point,
					       (uint16_t)request->buffer, request->offset, data,
					       request->data_size, &findings->difference);
	}
	if (rc == -EILSEQ) {
		copy_name(findings->operator_name, findings->difference.operator_name);
		copy_name(findings->tensor, findings->difference.tensor);
	}
	return rc;
}

/* A request that names the slot of the current model does nothing after the model was replaced. */
static int roll_back(struct opwest_bundles *bundles, const struct opwest_bundle_request *request,
		     struct opwest_bundle_verdict *verdict)
{
	struct opwest_bundle_record record;
	uint8_t current;

	if (request->slot != OPWEST_BUNDLE_NO_SLOT) {
		opwest_bundles_state(bundles, &record);
		current = record.trying != OPWEST_BUNDLE_NO_SLOT ? record.trying : record.active;
		if (request->slot != current) {
			return -EALREADY;
		}
	}
	return opwest_bundles_roll_back(bundles, verdict);
}

int opwest_bundle_execute(struct opwest_bundles *bundles,
			  const struct opwest_bundle_request *request, const uint8_t *data,
			  struct opwest_bundle_findings *findings)
{
	switch (request->job) {
	case OPWEST_BUNDLE_JOB_STATE:
		opwest_bundles_state(bundles, &findings->record);
		return 0;
	case OPWEST_BUNDLE_JOB_LIST:
		return opwest_bundles_list(bundles, (uint8_t)request->slot, &findings->info);
	case OPWEST_BUNDLE_JOB_BEGIN:
		return begin(bundles, request, findings);
	case OPWEST_BUNDLE_JOB_INSTALL:
		return opwest_bundles_install(bundles, &findings->verdict);
	case OPWEST_BUNDLE_JOB_CONFIRM:
		return opwest_bundles_confirm(bundles);
	case OPWEST_BUNDLE_JOB_ROLL_BACK:
		return roll_back(bundles, request, &findings->verdict);
	default:
		return check(bundles, request, data, findings);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_OTLP_REPLY_H
#define PODPROF_EXPORT_OTLP_REPLY_H

/* The answer to a request that was accepted. */

#include <stddef.h>
#include <stdint.h>

#include "base/strview.h"

/**
 * struct otlp_reply - ExportProfilesServiceResponse.partial_success
 * @rejected: profiles; 0 for none
 * @message:  of the server; foreign, borrows the bytes
 */
struct otlp_reply {
	int64_t rejected;
	struct strview message;
};

/* Parse a protobuf message. The parts of a damaged message before the damage count. A negative
 * number of profiles counts as 0. */
void otlp_reply_parse(const void *bytes, size_t n, struct otlp_reply *ret);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_SPOOLING_H
#define PODPROF_TEST_SUPPORT_SPOOLING_H

/* An export with a spool in a directory of its own, and the profiles that arrive at sinks. Profiles
 * have the service names "s0.", "s1.", ...; a profile's number is the number in the name. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/export.h"
#include "support/sink.h"
#include "support/tree.h"

struct loop;

#define SPOOLING_PROFILES_MAX 16384
#define SPOOLING_SINKS_MAX    2

/* The owner sets the first members; spooling_start() fills the rest. @busy: of export_opts. */
struct spooling {
	struct tree tree;
	const char *urls[SPOOLING_SINKS_MAX];
	size_t n_urls;
	uint64_t spool_bytes;
	uint64_t queue_bytes;
	uint64_t blocked_ns;
	uint64_t open_wait_ns;
	uint64_t window_ns; /* 0: no pace */
	char *error;
	char busy[EXPORT_BUSY_BYTES];
	struct loop *loop;
	struct export *e;
	size_t next; /* number of the next profile */
	bool flushed;
};

void spooling_init(struct spooling *s);
void spooling_deinit(struct spooling *s);
/* As export_new(). The spool's directory is "spool" in the tree. */
int spooling_start(struct spooling *s);
void spooling_stop(struct spooling *s);
/* @n profiles of @bytes bytes each, with the start @start_ns. */
void spooling_submit(struct spooling *s, size_t n, size_t bytes, uint64_t start_ns);
/* export_flush(), until its callback. */
void spooling_flush(struct spooling *s, uint64_t timeout_ns);

/* "pyroscope", or "pyroscope:HOST" with two sinks. */
uint64_t spooling_outcome(const struct spooling *s, const char *destination, const char *outcome);
uint64_t spooling_metric(const struct spooling *s, const char *family, const char *labels);
/* The path of the only segment; fails if there are several. Caller frees. NULL if there is none. */
char *spooling_segment(const struct spooling *s);

/* How often each profile arrived in requests of the sink, from the request @first on. With
 * @accepted only in requests answered with 200. Returns the number of different profiles. */
size_t spooling_arrived(struct sink *sink, size_t first, bool accepted,
			unsigned char ret[SPOOLING_PROFILES_MAX]);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SERVER_PULL_ANSWER_H
#define PODPROF_SERVER_PULL_ANSWER_H

/* The answers to requests for profiles (pull.h), and their number by outcome. */

#include <stdint.h>

struct buf;
struct httpd_later;
struct metric_family_desc;
struct metric_sink;

/* Seconds of Retry-After for PULL_BUSY. */
#define PULL_RETRY_S 5

enum pull_outcome {
	PULL_MADE,
	PULL_NOTHING,  /* no such entity or process, nothing recorded, the kind is off */
	PULL_REFUSED,  /* all selected entities are excluded from profiling */
	PULL_BUSY,     /* other requests, or the share of CPU time */
	PULL_GONE,     /* the client left before the end */
	PULL_STUCK,    /* the read of a process blocks */
	PULL_FAILED,   /* no samples in time, no memory, too large, the end of the agent */
	PULL_LEFT_OUT, /* not of requests: samples, records and processes left out of answers */
	PULL_OUTCOME_MAX,
};

/* {0} at the start. */
struct pull_counts {
	uint64_t n[PULL_OUTCOME_MAX];
};

/* Answers with a status and a line of text. @later is gone. */
void pull_refuse(struct pull_counts *counts, struct httpd_later *later, enum pull_outcome outcome,
		 unsigned int status, const char *why);
/* Answers with a profile: @pprof is taken and empty afterwards, and a browser saves NAME.pb.gz.
 * @n_left_out: of the samples, records and processes. @later is gone. */
void pull_send(struct pull_counts *counts, struct httpd_later *later, const char *name,
	       struct buf *pprof, uint64_t n_left_out);
/* @never: an outcome that this maker of profiles does not have; PULL_OUTCOME_MAX: it has all. */
void pull_collect(const struct pull_counts *counts, const struct metric_family_desc *family,
		  enum pull_outcome never, struct metric_sink *sink);

#endif

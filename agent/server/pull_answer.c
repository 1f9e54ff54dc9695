// SPDX-License-Identifier: Apache-2.0
#include "server/pull_answer.h"

#include <stdio.h>

#include "base/metric.h"
#include "server/httpd.h"

void pull_refuse(struct pull_counts *counts, struct httpd_later *later, enum pull_outcome outcome,
		 unsigned int status, const char *why)
{
	struct httpd_response response = {.body = BUF_INIT(HTTPD_BODY_MAX)};

	counts->n[outcome]++;
	httpd_fail(&response, status, why);
	if (outcome == PULL_BUSY)
		response.retry_after_s = PULL_RETRY_S;
	httpd_later_answer(later, &response);
}

void pull_send(struct pull_counts *counts, struct httpd_later *later, const char *name,
	       struct buf *pprof, uint64_t n_left_out)
{
	struct httpd_response response = {
		.status = 200,
		.content_type = "application/octet-stream",
		.body = *pprof,
	};

	*pprof = (struct buf)BUF_INIT(0);
	snprintf(response.filename, sizeof(response.filename), "%s.pb.gz", name);
	counts->n[PULL_MADE]++;
	counts->n[PULL_LEFT_OUT] += n_left_out;
	httpd_later_answer(later, &response);
}

void pull_collect(const struct pull_counts *counts, const struct metric_family_desc *family,
		  enum pull_outcome never, struct metric_sink *sink)
{
	static const char *const names[PULL_OUTCOME_MAX] = {
		[PULL_MADE] = "ok",	     [PULL_NOTHING] = "empty",
		[PULL_REFUSED] = "excluded", [PULL_BUSY] = "busy",
		[PULL_GONE] = "abandoned",   [PULL_STUCK] = "unresponsive",
		[PULL_FAILED] = "failed",    [PULL_LEFT_OUT] = "dropped",
	};

	metric_family(sink, family);
	for (enum pull_outcome o = 0; o < PULL_OUTCOME_MAX; o++)
		if (o != never)
			metric_u64(sink, counts->n[o], &(struct metric_label){"outcome", names[o]},
				   1);
}

// SPDX-License-Identifier: Apache-2.0
#include "support/spooling.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "support/metrics.h"
#include "support/profiles.h"
#include "support/test.h"
#include "support/until.h"

#include "base/loop.h"
#include "base/nsec.h"
#include "export/export.h"
#include "push.pb-c.h"

void spooling_init(struct spooling *s)
{
	*s = (struct spooling){.spool_bytes = 64u << 20,
			       .queue_bytes = 16u << 20,
			       .open_wait_ns = UNTIL_SECONDS * NSEC_PER_SEC};
	unsetenv("http_proxy");
	unsetenv("all_proxy");
	unsetenv("ALL_PROXY");
	tree_init(&s->tree);
	assert_int_equal(loop_new(&s->loop), 0);
}

void spooling_deinit(struct spooling *s)
{
	spooling_stop(s);
	free(s->error);
	loop_free(s->loop);
	tree_deinit(&s->tree);
}

static void on_busy(void *ctx, const char *text)
{
	struct spooling *s = ctx;

	snprintf(s->busy, sizeof(s->busy), "%s", text);
}

int spooling_start(struct spooling *s)
{
	char specs[SPOOLING_SINKS_MAX][256], dir[128];
	const char *destinations[SPOOLING_SINKS_MAX];
	struct export_opts opts = {
		.loop = s->loop,
		.destinations = destinations,
		.n_destinations = s->n_urls,
		.spool_dir = dir,
		.spool_bytes = s->spool_bytes,
		.disk_blocked_ns = s->blocked_ns,
		.open_wait_ns = s->open_wait_ns,
		.queue_bytes = s->queue_bytes,
		.window_ns = s->window_ns,
		.busy = on_busy,
		.ctx = s,
	};

	snprintf(dir, sizeof(dir), "%s/spool", s->tree.path);
	for (size_t i = 0; i < s->n_urls; i++) {
		snprintf(specs[i], sizeof(specs[i]), "pyroscope=%s", s->urls[i]);
		destinations[i] = specs[i];
	}
	free(s->error);
	s->error = NULL;
	return export_new(&opts, &s->e, &s->error);
}

void spooling_stop(struct spooling *s)
{
	export_free(s->e);
	s->e = NULL;
}

void spooling_submit(struct spooling *s, size_t n, size_t bytes, uint64_t start_ns)
{
	for (size_t i = 0; i < n; i++) {
		char service[32];

		snprintf(service, sizeof(service), "s%zu.", s->next++);
		export_submit(s->e, profile_make(PROFILE_CPU, service, start_ns, 'p', bytes));
	}
}

static void on_flushed(void *ctx)
{
	struct spooling *s = ctx;

	s->flushed = true;
}

static bool is_flushed(void *ctx)
{
	struct spooling *s = ctx;

	return s->flushed;
}

void spooling_flush(struct spooling *s, uint64_t timeout_ns)
{
	s->flushed = false;
	export_flush(s->e, timeout_ns, on_flushed, s);
	loop_until(s->loop, is_flushed, s);
}

uint64_t spooling_metric(const struct spooling *s, const char *family, const char *labels)
{
	return metrics_get(export_collect, s->e, family, labels);
}

uint64_t spooling_outcome(const struct spooling *s, const char *destination, const char *outcome)
{
	char labels[128];

	snprintf(labels, sizeof(labels), "%s,%s", destination, outcome);
	return spooling_metric(s, "podprof_export_profiles", labels);
}

char *spooling_segment(const struct spooling *s)
{
	char path[128], *ret = NULL;
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/spool", s->tree.path);
	dir = opendir(path);
	assert_non_null(dir);
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.') {
			assert_null(ret);
			assert_true(asprintf(&ret, "%s/%s", path, entry->d_name) > 0);
		}
	closedir(dir);
	return ret;
}

static size_t profile_number(const Push__V1__RawProfileSeries *series)
{
	for (size_t i = 0; i < series->n_labels; i++)
		if (strcmp(series->labels[i]->name, "service_name") == 0)
			return strtoul(series->labels[i]->value + 1, NULL, 10);
	fail_msg("no name");
	return 0;
}

size_t spooling_arrived(struct sink *sink, size_t first, bool accepted,
			unsigned char ret[SPOOLING_PROFILES_MAX])
{
	size_t n = 0;

	memset(ret, 0, SPOOLING_PROFILES_MAX);
	for (size_t i = first; i < sink_n_requests(sink); i++) {
		const struct sink_request *request = sink_request(sink, i);
		Push__V1__PushRequest *push;

		if (accepted && request->status != 200)
			continue;
		push = push__v1__push_request__unpack(NULL, request->body_len,
						      (const uint8_t *)request->body);
		assert_non_null(push);
		for (size_t k = 0; k < push->n_series; k++) {
			size_t number = profile_number(push->series[k]);

			assert_true(number < SPOOLING_PROFILES_MAX);
			n += ret[number]++ == 0;
		}
		push__v1__push_request__free_unpacked(push, NULL);
	}
	return n;
}

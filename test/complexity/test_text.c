// SPDX-License-Identifier: Apache-2.0
/* What servers, clients, people and disks tell: agent/metadata, agent/relabel, agent/export,
 * agent/server and agent/doctor. The pods' authors write the labels. */
#include "support/test.h"

#include <jansson.h>
#include <string.h>

#include "base/buf.h"
#include "base/cursor.h"
#include "base/json_splitter.h"
#include "base/labels.h"
#include "complexity/count.h"
#include "complexity/growth.h"
#include "doctor/listener.h"
#include "export/otlp_reply.h"
#include "export/profile.h"
#include "export/pyroscope_reply.h"
#include "export/spool_format.h"
#include "export/upload_reply.h"
#include "metadata/pod.h"
#include "metadata/pods.h"
#include "metadata/podstream.h"
#include "relabel/pattern.h"
#include "relabel/relabel.h"
#include "server/accept.h"
#include "server/html.h"
#include "server/web_config.h"

static void put(struct buf *to, const char *text)
{
	assert_int_equal(buf_puts(to, text), 0);
}

static void put_times(struct buf *to, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		put(to, text);
}

/* ---------------------------------------------------------------- pods */

static int see_value(void *ctx, const char *key, const char *json, size_t n)
{
	(void)ctx;
	(void)key;
	(void)json;
	(void)n;
	return 0;
}

/* Brackets and escapes inside of each other, byte by byte. */
static uint64_t splitter_nested(size_t n)
{
	struct buf text = BUF_INIT(64u << 20);
	struct json_splitter cut;
	uint64_t before;

	put(&text, "{\"a\":");
	put_times(&text, "[{\"\\\\\\\"[\":", n);
	put(&text, "1");
	put_times(&text, "}]", n);
	put(&text, "}");
	json_splitter_init(&cut, JSON_SPLITTER_MEMBERS, SIZE_MAX / 2, see_value, NULL);
	before = count_now();
	for (size_t i = 0; i < text.len; i++)
		assert_int_equal(json_splitter_feed(&cut, text.data + i, 1), 0);
	assert_int_equal(json_splitter_end(&cut), 0);
	before = count_now() - before;
	json_splitter_deinit(&cut);
	buf_deinit(&text);
	return before;
}

static void put_pod(struct buf *to, size_t i, size_t resource)
{
	assert_int_equal(buf_printf(to,
				    "{\"metadata\":{\"name\":\"p%zu\",\"namespace\":\"n\",\"uid\":"
				    "\"u%zu\",\"labels\":{\"a\":\"%zu\"}},\"status\":{"
				    "\"containerStatuses\":[{\"name\":\"c\",\"containerID\":"
				    "\"containerd://%064x\"}]}}",
				    i, i, resource, 7),
			 0);
}

static void put_list(struct buf *to, size_t n, size_t resource)
{
	put(to, "{\"kind\":\"PodList\",\"metadata\":{},\"items\":[");
	for (size_t i = 0; i < n; i++) {
		put(to, i ? "," : "");
		put_pod(to, i, resource);
	}
	put(to, "]}");
}

static void read_list(struct pods *pods, const struct buf *text)
{
	struct podstream stream;

	podstream_init(&stream, PODSTREAM_LIST, pods, NULL);
	assert_int_equal(podstream_feed(&stream, text->data, text->len), 0);
	assert_int_equal(podstream_end(&stream), 0);
	podstream_deinit(&stream);
}

/* All pods claim one container's id. Then each changes, and then all go away. */
static uint64_t pods_one_id(size_t n)
{
	struct buf first = BUF_INIT(64u << 20), second = first, none = first;
	const struct pod_container *container;
	struct pods *pods;
	char id[65];
	uint64_t before;

	put_list(&first, n, 1);
	put_list(&second, n, 2);
	put_list(&none, 0, 0);
	snprintf(id, sizeof(id), "%064x", 7);
	assert_int_equal(pods_new(&pods), 0);
	before = count_now();
	read_list(pods, &first);
	assert_int_equal(pods_count(pods), n);
	read_list(pods, &second);
	assert_null(pods_by_container(pods, id, &container));
	read_list(pods, &none);
	assert_int_equal(pods_count(pods), 0);
	before = count_now() - before;
	pods_free(pods);
	buf_deinit(&first);
	buf_deinit(&second);
	buf_deinit(&none);
	return before;
}

/* A pod with labels and containers above their ceilings, and each wanted member again and again. */
static uint64_t pod_members(size_t n)
{
	struct buf text = BUF_INIT(64u << 20);
	struct pod *pod;
	uint64_t before;

	put(&text, "{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"uid\":\"u\",\"labels\":{");
	for (size_t i = 0; i < n; i++)
		assert_int_equal(buf_printf(&text, "\"%zu\":\"x\",", i), 0);
	put(&text, "\"a\":\"b\"}}");
	for (size_t i = 0; i < n; i++)
		assert_int_equal(buf_printf(&text,
					    ",\"spec\":{\"nodeName\":\"n\"},\"status\":{"
					    "\"containerStatuses\":[{\"name\":\"c%zu\"}]}",
					    i),
				 0);
	put(&text, "}");
	before = count_now();
	assert_int_equal(pod_parse(text.data, text.len, &pod), 0);
	before = count_now() - before;
	pod_free(pod);
	buf_deinit(&text);
	return before;
}

/* ---------------------------------------------------------------- rules */

/* Classes that begin as if a class's name were to follow. */
static uint64_t pattern_classes(size_t n)
{
	struct buf text = BUF_INIT(64u << 20);
	struct pattern_error error;
	struct pattern *pattern;
	uint64_t before;

	put_times(&text, "[[:a]", n);
	before = count_now();
	assert_int_equal(pattern_new(text.data, &pattern, &error), 0);
	before = count_now() - before;
	pattern_free(pattern);
	buf_deinit(&text);
	return before;
}

/* Labels in reverse order, which a rule renames. A set is a sorted array, and an insertion moves
 * the labels behind it: the moves are few beside the matches, up to LABELS_META_MAX. */
static uint64_t relabel_names(size_t n)
{
	struct labels labels = {.max = LABELS_META_MAX}, origins = labels;
	json_t *rules = json_loads("[{\"action\":\"labelmap\",\"regex\":\"z(.*)\"},"
				   "{\"action\":\"labeldrop\",\"regex\":\"z.*\"}]",
				   0, NULL);
	struct relabel_result result;
	struct relabel_error error;
	struct relabel *relabel;
	uint64_t before;
	char name[32];

	assert_non_null(rules);
	assert_int_equal(relabel_new(rules, &relabel, &error), 0);
	before = count_now();
	for (size_t i = n; i-- > 0;) {
		snprintf(name, sizeof(name), "za%08zu", i);
		assert_int_equal(labels_set(&labels, name, "x"), 0);
	}
	assert_int_equal(relabel_apply(relabel, &labels, &origins, &result), RELABEL_KEPT);
	before = count_now() - before;
	assert_int_equal(labels.n, n);
	labels_deinit(&labels);
	labels_deinit(&origins);
	relabel_free(relabel);
	json_decref(rules);
	return before;
}

/* ---------------------------------------------------------------- answers */

/* Partial successes inside of one answer, each empty. */
static uint64_t otlp_partials(size_t n)
{
	struct buf bytes = BUF_INIT(64u << 20);
	struct otlp_reply reply;
	uint64_t before;

	for (size_t i = 0; i < n; i++)
		assert_int_equal(buf_append(&bytes, "\x0a\x02\x08\x01", 4), 0);
	before = count_now();
	otlp_reply_parse(bytes.data, bytes.len, &reply);
	before = count_now() - before;
	assert_int_equal(reply.rejected, 1);
	buf_deinit(&bytes);
	return before;
}

/* Each profile failed, for a reason that almost is the next failure. */
static uint64_t pyroscope_failures(size_t n)
{
	struct buf text = BUF_INIT(64u << 20);
	enum pyroscope_fate *fates = calloc(n, sizeof(*fates));
	uint64_t before;

	assert_non_null(fates);
	assert_int_equal(buf_printf(&text, "failed to make a GRPC request: %zu errors: ", n), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(buf_printf(&text,
					    "%spush series with index %zu and id x failed: "
					    "; push series with inde; push series with inde",
					    i ? "; " : "", i),
				 0);
	before = count_now();
	assert_true(pyroscope_reply_fates(strview_of_bytes(text.data, text.len), n, fates));
	before = count_now() - before;
	free(fates);
	buf_deinit(&text);
	return before;
}

/* One member, again and again. */
static uint64_t upload_members(size_t n)
{
	struct buf text = BUF_INIT(64u << 20);
	uint64_t before, size;

	put(&text, "{");
	put_times(&text, "\"size\":\"1\",", n);
	put(&text, "\"size\":\"7\"}");
	before = count_now();
	assert_true(upload_reply_size(text.data, text.len, &size));
	before = count_now() - before;
	assert_int_equal(size, 7);
	buf_deinit(&text);
	return before;
}

/* ---------------------------------------------------------------- requests, pages, settings */

/* Clauses of parameters. */
static uint64_t accept_clauses(size_t n)
{
	struct buf text = BUF_INIT(64u << 20);
	uint64_t before;

	put_times(&text, "text/plain;q=;;version=;q=0.123 , ", n);
	before = count_now();
	(void)accept_format(text.data);
	(void)accept_gzip(text.data);
	before = count_now() - before;
	buf_deinit(&text);
	return before;
}

/* Only characters that are replaced, or no characters. */
static uint64_t html_special(size_t n)
{
	struct buf text = BUF_INIT(64u << 20), page = text;
	struct html html = {.b = &page};
	uint64_t before;

	put_times(&text, "\"\xe2\x80\xae\xff", n);
	before = count_now();
	html_text(&html, text.data);
	before = count_now() - before;
	buf_deinit(&text);
	buf_deinit(&page);
	return before;
}

/* Users with names that differ at the end. */
static uint64_t web_config_users(size_t n)
{
	struct buf text = BUF_INIT(64u << 20);
	char error[WEB_ERROR_MAX], name[200] = "";
	struct web_config config;
	uint64_t before;

	memset(name, 'a', sizeof(name) - 1);
	put(&text, "basic_auth_users:\n");
	for (size_t i = 0; i < n; i++)
		assert_int_equal(buf_printf(&text, "  %s%04zu: $2y$10$%053zu\n", name, i, i), 0);
	before = count_now();
	assert_int_equal(web_config_parse(text.data, text.len, "", &config, error), 0);
	before = count_now() - before;
	assert_int_equal(config.n_users, n);
	web_config_deinit(&config);
	buf_deinit(&text);
	return before;
}

/* ---------------------------------------------------------------- the spool's segments */

/* Reads all of a segment, and frees it. */
static uint64_t run_spool(struct buf *segment)
{
	uint64_t before = count_now();
	char id[QUEUED_PROFILE_ID_LEN + 1];
	struct spool_record record;
	struct profile *profile;
	struct spool_ack ack;
	struct cursor c, acks;
	int r;

	cursor_init(&c, segment->data, segment->len);
	while (!(r = spool_record_next(&c, &record))) {
		if (!spool_profile_read(&record, false, &profile, id)) {
			profile_free(profile);
			continue;
		}
		cursor_init(&acks, record.body, record.body_len);
		while (!spool_ack_next(&acks, &ack))
			;
	}
	assert_int_equal(r, SPOOL_FORMAT_END);
	buf_deinit(segment);
	return count_now() - before;
}

/* Profiles with as many labels as there may be, in reverse order. */
static uint64_t spool_profiles(size_t n)
{
	static const uint64_t destination = 1;
	struct buf segment = BUF_INIT(64u << 20);
	struct profile profile = {.kind = PROFILE_CPU};
	char name[32], pprof[] = "pprof";

	profile.pprof = pprof;
	profile.pprof_len = sizeof(pprof);
	for (size_t i = LABELS_MAX; i-- > 0;) {
		snprintf(name, sizeof(name), "l%04zu", i);
		assert_int_equal(labels_set(&profile.labels, name, name), 0);
	}
	for (size_t i = 0; i < n; i++)
		assert_int_equal(spool_profile_append(&segment, &profile,
						      "00000000-0000-0000-0000-000000000000",
						      &destination, 1),
				 0);
	labels_deinit(&profile.labels);
	return run_spool(&segment);
}

/* One record for all. */
static uint64_t spool_acks(size_t n)
{
	struct buf segment = BUF_INIT(64u << 20);
	struct spool_ack *acks = calloc(n, sizeof(*acks));

	assert_non_null(acks);
	assert_int_equal(spool_acks_append(&segment, acks, n), 0);
	free(acks);
	return run_spool(&segment);
}

/* ---------------------------------------------------------------- the doctor's listener */

static uint64_t run_listener(struct buf *text)
{
	uint64_t before = count_now();
	struct listener listener = {.n = 0};

	assert_true(listener_read(text->data, &listener));
	before = count_now() - before;
	buf_deinit(text);
	return before;
}

static uint64_t listener_conditions(size_t n)
{
	struct buf text = BUF_INIT(64u << 20);

	put(&text, "not ready\n");
	put_times(&text, "name: failing, why\n", n);
	return run_listener(&text);
}

static uint64_t listener_line(size_t n)
{
	struct buf text = BUF_INIT(64u << 20);

	put(&text, "not ready\n");
	for (size_t i = 0; i < 4; i++) {
		put_times(&text, " \xff", n);
		put(&text, ": failing, ");
		put_times(&text, " \xff", n);
		put(&text, "\n");
	}
	return run_listener(&text);
}

static const struct growth rows[] = {
	{"json_splitter: brackets in brackets", splitter_nested, 1024, GROWS},
	{"pods: one container's id for all", pods_one_id, 128, GROWS},
	{"pod: members again and again", pod_members, 512, GROWS},
	{"pattern: classes", pattern_classes, 128, GROWS},
	{"relabel: labels in reverse order", relabel_names, 32, GROWS},
	{"otlp_reply: partial successes", otlp_partials, 4096, GROWS},
	{"pyroscope_reply: failures", pyroscope_failures, 512, GROWS},
	{"upload_reply: one member", upload_members, 1024, GROWS},
	{"accept: clauses", accept_clauses, 256, GROWS},
	{"html: special characters", html_special, 4096, GROWS},
	{"web_config: users", web_config_users, 32, GROWS},
	{"spool_format: profiles", spool_profiles, 16, GROWS},
	{"spool_format: acknowledgements", spool_acks, 1024, GROWS},
	{"listener: conditions", listener_conditions, 1024, GROWS},
	{"listener: long lines", listener_line, 65536, GROWS},
};

int main(void)
{
	return growth_main(rows, array_size(rows));
}

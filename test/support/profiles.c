// SPDX-License-Identifier: Apache-2.0
#include "support/profiles.h"

#include <stdlib.h>

#include "support/test.h"

#include "base/buf.h"
#include "pprof/pprof.h"

struct profile *profile_make(enum profile_kind kind, const char *service, uint64_t start_ns,
			     char mark, size_t n)
{
	struct profile *profile = calloc(1, sizeof(*profile));

	profile->kind = kind;
	profile->start_ns = start_ns;
	profile->duration_ns = 60000000000;
	profile->pprof = calloc(1, n);
	profile->pprof[0] = mark;
	profile->pprof_len = n;
	if (service)
		assert_int_equal(labels_set(&profile->labels, "service_name", service), 0);
	assert_int_equal(labels_set(&profile->labels, "node", "n1"), 0);
	return profile;
}

/* ---- a readable profile */

const struct pprof_opts profile_types[PROFILE_KIND_MAX] = {
	[PROFILE_CPU] = {.types = {{"samples", "count"}, {"cpu", "nanoseconds"}},
			 .n_types = 2,
			 .period_type = {"cpu", "nanoseconds"},
			 .period = PROFILE_REAL_PERIOD,
			 .default_type = "cpu"},
	[PROFILE_OFF_CPU] = {.types = {{"delay", "nanoseconds"}, {"switches", "count"}},
			     .n_types = 2,
			     .period_type = {"delay", "nanoseconds"},
			     .period = 1},
	[PROFILE_GO_HEAP] = {.types = {{"alloc_objects", "count"},
				       {"alloc_space", "bytes"},
				       {"inuse_objects", "count"},
				       {"inuse_space", "bytes"}},
			     .n_types = 4,
			     .period_type = {"space", "bytes"},
			     .period = 524288},
	[PROFILE_GO_MUTEX] = {.types = {{"contentions", "count"}, {"delay", "nanoseconds"}},
			      .n_types = 2,
			      .period_type = {"contentions", "count"},
			      .period = 1},
	[PROFILE_GO_BLOCK] = {.types = {{"contentions", "count"}, {"delay", "nanoseconds"}},
			      .n_types = 2,
			      .period_type = {"contentions", "count"},
			      .period = 1},
};

static const struct {
	const char *path, *build_id, *function, *file;
	uint64_t address;
} real_places[] = {
	{"/app/web", "abcd01", "main.main", "/src/main.go", 0x401000},
	{"/app/web", "abcd01", "main.work", "/src/main.go", 0x402000},
	{"[kernel.kallsyms]", "", "do_read", "", 0xffffffff81000010},
	{"/lib/libc.so.6", "abcd02", "read", "", 0x1000},
};

static uint32_t real_location(struct pprof *p, size_t i)
{
	const struct pprof_mapping mapping = {.limit = UINT64_MAX,
					      .path = real_places[i].path,
					      .build_id = real_places[i].build_id,
					      .has_functions = true};
	struct pprof_line line = {.line = (int64_t)i + 10};
	uint32_t map, location;

	assert_int_equal(pprof_mapping(p, &mapping, &map), 0);
	assert_int_equal(pprof_function(p, real_places[i].function, real_places[i].function,
					real_places[i].file, 5, &line.function),
			 0);
	assert_int_equal(pprof_location(p, map, real_places[i].address, &line, 1, &location), 0);
	return location;
}

static int64_t real_value(enum profile_kind kind, size_t sample, size_t type)
{
	static const bool zero[][2] = {{false, false}, {false, true}, {true, false}};

	if (kind == PROFILE_CPU)
		return type ? (10 * (int64_t)sample + 10) * PROFILE_REAL_PERIOD
			    : 10 * (int64_t)sample + 10;
	return zero[sample][type % 2] ? 0 : (int64_t)(10 * sample + 10 + type);
}

struct profile *profile_make_real(enum profile_kind kind)
{
	static const char *const labels[][2] = {
		{"namespace", "shop"}, {"pod", "web-5d4f8c7b9-x2x4k"}, {"container", "web"}};
	struct profile *profile = profile_make(kind, "shop", PROFILE_REAL_START_NS, 0, 1);
	struct pprof_opts opts = profile_types[kind];
	struct buf out = BUF_INIT(1u << 20);
	struct pprof *p;

	opts.time_ns = (int64_t)profile->start_ns;
	opts.duration_ns = (int64_t)profile->duration_ns;
	assert_int_equal(pprof_new(&opts, &p), 0);
	for (size_t i = 0; i < 3; i++) {
		uint32_t stack[2] = {real_location(p, i + 1), real_location(p, 0)};
		int64_t values[PPROF_VALUES_MAX];

		for (size_t t = 0; t < opts.n_types; t++)
			values[t] = real_value(kind, i, t);
		assert_int_equal(pprof_sample(p, stack, 2, values, NULL, 0), 0);
	}
	assert_int_equal(pprof_encode(p, &out), 0);
	pprof_free(p);
	for (size_t i = 0; i < array_size(labels); i++)
		assert_int_equal(labels_set(&profile->labels, labels[i][0], labels[i][1]), 0);
	free(profile->pprof);
	profile->pprof_len = out.len;
	profile->pprof = buf_take(&out);
	return profile;
}

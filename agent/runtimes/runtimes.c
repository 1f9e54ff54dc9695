// SPDX-License-Identifier: Apache-2.0
/*
 * A function becomes an image (procmap/image.h) with its first frame: immutable, names included. So
 * the report thread names a frame after the process has gone, and equal functions of several
 * processes are equal frames. The table here deduplicates by content. Caches by address and process
 * belong to the readers.
 */
#include "runtimes/runtimes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/metric.h"
#include "base/utf8.h"

#define RUNTIME_ROW(NAME, name) [FRAME_RUNTIME_##NAME] = &runtime_##name,
static const struct runtime *const all_runtimes[FRAME_RUNTIME_MAX] = {[FRAME_RUNTIME_NONE] = NULL,
								      FRAME_RUNTIMES(RUNTIME_ROW)};

enum outcome {
	RUNTIMES_NAMED,
	RUNTIMES_GONE,
	RUNTIMES_BROKEN,    /* the walker could not read the frames */
	RUNTIMES_NO_READER, /* the table has none for the runtime */
	RUNTIMES_FULL,
	RUNTIMES_OUTCOME_MAX,
};

static const char *const outcome_names[RUNTIMES_OUTCOME_MAX] = {
	[RUNTIMES_NAMED] = "ok",  [RUNTIMES_GONE] = "gone",	      [RUNTIMES_BROKEN] = "broken",
	[RUNTIMES_FULL] = "full", [RUNTIMES_NO_READER] = "no_reader",
};

/* For people. */
static const char *const reason_names[FRAME_REASON_MAX] = {
	[FRAME_REASON_NONE] = "broken",
	[FRAME_REASON_UNREADABLE] = "unreadable",
	[FRAME_REASON_ODD] = "not understood",
};

struct function {
	struct image *image; /* owns a reference */
	UT_hash_handle hh;
	size_t n;
	char key[];
};

struct runtimes {
	struct runtimes_opts opts;
	void **readers; /* by runtime */
	struct function *functions;
	uint64_t outcomes[RUNTIMES_OUTCOME_MAX];
};

DEFINE_CLEANUP(struct runtimes *, runtimes_freep, runtimes_free);

/* ---------------------------------------------------------------- functions */

/* Key of a function: kind, runtime, names, first line. */
struct function_key {
	size_t n;
	char bytes[64 + RUNTIMES_NAME_MAX + RUNTIMES_FILE_MAX];
};

static void function_drop(struct runtimes *rs, struct function *f)
{
	HASH_DEL(rs->functions, f);
	image_unref(f->image);
	free(f);
}

static int function_new(struct runtimes *rs, enum image_kind kind, const char *path,
			const struct image_function *function, const struct function_key *key,
			struct function **ret)
{
	struct function *f = calloc(1, sizeof(*f) + key->n);
	bool hash_oom = false;

	if (!f || image_new_function(kind, path, function, &f->image)) {
		free(f);
		return -ENOMEM;
	}
	f->n = key->n;
	memcpy(f->key, key->bytes, key->n);
	HASH_ADD_KEYPTR(hh, rs->functions, f->key, f->n, f);
	if (hash_oom) {
		image_unref(f->image);
		free(f);
		return -ENOMEM;
	}
	*ret = f;
	return 0;
}

/* A reference to the image of a function. 0, RUNTIMES_FULL, -ENOMEM. */
static int function_get(struct runtimes *rs, enum image_kind kind, const char *path,
			const struct image_function *function, struct image **ret)
{
	char name[RUNTIMES_NAME_MAX], file[RUNTIMES_FILE_MAX];
	const struct image_function clean = {name, file, function->start_line};
	struct function_key key;
	struct function *f;
	int r;

	snprintf(name, sizeof(name), "%s", function->name);
	snprintf(file, sizeof(file), "%s", function->file);
	utf8_make_printable(name);
	utf8_make_printable(file);
	key.n = (size_t)snprintf(key.bytes, sizeof(key.bytes), "%d%.40s%c%u %s%c%s", (int)kind,
				 path, 0, clean.start_line, name, 0, file);
	HASH_FIND(hh, rs->functions, key.bytes, key.n, f);
	if (!f) {
		if (kind == IMAGE_RUNTIME && HASH_COUNT(rs->functions) >= RUNTIMES_FUNCTIONS_MAX)
			return RUNTIMES_FULL;
		r = function_new(rs, kind, path, &clean, &key, &f);
		if (r)
			return r;
	}
	*ret = image_ref(f->image);
	return 0;
}

void runtimes_sweep(struct runtimes *rs)
{
	struct function *f, *next;

	HASH_ITER(hh, rs->functions, f, next)
		if (__atomic_load_n(&f->image->refs, __ATOMIC_ACQUIRE) == 1)
			function_drop(rs, f);
	for (size_t i = 0; i < rs->opts.n; i++)
		if (rs->opts.table[i] && rs->opts.table[i]->sweep)
			rs->opts.table[i]->sweep(rs->readers[i]);
}

/* ---------------------------------------------------------------- frames */

static const struct runtime *runtime_of(const struct runtimes *rs, uint32_t number)
{
	return number < rs->opts.n ? rs->opts.table[number] : NULL;
}

uint32_t runtimes_of(const struct runtimes *rs, const struct address_space_who *who,
		     const struct address_space *space)
{
	for (uint32_t i = 0; i < rs->opts.n; i++) {
		const struct runtime *rt = rs->opts.table[i];

		if (rt && rt->runs(rs->readers[i], who, space))
			return i;
	}
	return FRAME_RUNTIME_NONE;
}

const void *runtimes_record(const struct runtimes *rs, uint32_t number,
			    const struct address_space_who *who)
{
	const struct runtime *rt = runtime_of(rs, number);

	return rt && rt->record ? rt->record(rs->readers[number], who) : NULL;
}

bool runtimes_wants(const struct runtimes *rs, const struct address_space_who *who,
		    const struct frame_record *frame)
{
	const struct runtime *rt = runtime_of(rs, frame->runtime);

	return frame->kind == FRAME_RUNTIME && rt && rt->wants &&
	       rt->wants(rs->readers[frame->runtime], who, frame);
}

void runtimes_flush(const struct runtimes *rs)
{
	for (size_t i = 0; i < rs->opts.n; i++)
		if (rs->opts.table[i] && rs->opts.table[i]->flush)
			rs->opts.table[i]->flush(rs->readers[i]);
}

size_t runtimes_pending(const struct runtimes *rs)
{
	size_t n = 0;

	for (size_t i = 0; i < rs->opts.n; i++)
		if (rs->opts.table[i] && rs->opts.table[i]->pending)
			n += rs->opts.table[i]->pending(rs->readers[i]);
	return n;
}

void runtimes_wait(const struct runtimes *rs, uint64_t timeout_ns)
{
	for (size_t i = 0; i < rs->opts.n; i++)
		if (rs->opts.table[i] && rs->opts.table[i]->wait)
			rs->opts.table[i]->wait(rs->readers[i], timeout_ns);
}

/* A frame without a name: the reason is shown. */
static int resolve_unnamed(struct runtimes *rs, uint32_t number, enum outcome outcome,
			   const char *why, struct frame *ret)
{
	const struct runtime *rt = runtime_of(rs, number);
	char runtime[40], path[48], name[96];
	struct image_function function = {.name = name, .file = ""};

	if (rt)
		snprintf(runtime, sizeof(runtime), "%s", rt->name);
	else
		snprintf(runtime, sizeof(runtime), "runtime %u", number);
	snprintf(path, sizeof(path), "[%s]", runtime);
	snprintf(name, sizeof(name), "[%s: %s]", runtime, why);
	rs->outcomes[outcome]++;
	*ret = (struct frame){0};
	return function_get(rs, IMAGE_BROKEN, path, &function, &ret->image);
}

static int resolve_named(struct runtimes *rs, const struct address_space_who *who,
			 const struct frame_record *frame, struct frame *ret)
{
	const struct runtime *rt = runtime_of(rs, frame->runtime);
	struct runtime_place place = {.function = {.file = ""}};
	struct frame named = {0};
	char path[48];
	int r = rt->frame_name(rs->readers[frame->runtime], who, frame, &place);

	if (r == -ENOMEM)
		return r;
	if (r)
		return resolve_unnamed(rs, frame->runtime, RUNTIMES_GONE, "gone", ret);
	snprintf(path, sizeof(path), "[%.40s]", rt->name);
	r = function_get(rs, IMAGE_RUNTIME, path, &place.function, &named.image);
	if (r == RUNTIMES_FULL)
		return resolve_unnamed(rs, frame->runtime, RUNTIMES_FULL, "too many functions",
				       ret);
	if (r)
		return r;
	named.vaddr = place.line;
	rs->outcomes[RUNTIMES_NAMED]++;
	*ret = named;
	return 0;
}

int runtimes_resolve(struct runtimes *rs, const struct address_space_who *who,
		     const struct frame_record *frame, struct frame *ret)
{
	if (frame->kind == FRAME_BROKEN)
		return resolve_unnamed(rs, frame->runtime, RUNTIMES_BROKEN,
				       reason_names[frame->reason], ret);
	if (!runtime_of(rs, frame->runtime))
		return resolve_unnamed(rs, frame->runtime, RUNTIMES_NO_READER, "no reader", ret);
	return resolve_named(rs, who, frame, ret);
}

/* ---------------------------------------------------------------- life */

int runtimes_new(const struct runtimes_opts *opts, struct runtimes **ret)
{
	_cleanup_(runtimes_freep) struct runtimes *rs = calloc(1, sizeof(*rs));

	if (!rs)
		return -ENOMEM;
	rs->opts = *opts;
	if (!rs->opts.table) {
		rs->opts.table = all_runtimes;
		rs->opts.n = array_size(all_runtimes);
	}
	rs->readers = calloc(rs->opts.n, sizeof(*rs->readers));
	if (!rs->readers)
		return -ENOMEM;
	for (size_t i = 0; i < rs->opts.n; i++) {
		const struct runtime *rt = rs->opts.table[i];
		int r = rt && rt->new ? rt->new (&opts->host, &rs->readers[i]) : 0;

		if (r)
			return r;
	}
	*ret = take_ptr(rs);
	return 0;
}

void runtimes_free(struct runtimes *rs)
{
	struct function *f, *next;

	if (!rs)
		return;
	HASH_ITER(hh, rs->functions, f, next)
		function_drop(rs, f);
	for (size_t i = 0; rs->readers && i < rs->opts.n; i++)
		if (rs->readers[i])
			rs->opts.table[i]->free(rs->readers[i]);
	free(rs->readers);
	free(rs);
}

void runtimes_collect(void *runtimes, struct metric_sink *sink)
{
	static const struct metric_family_desc frames = {
		"podprof_runtime_frames", METRIC_COUNTER,
		"Frames of language runtimes, by outcome of the name lookup.", NULL};
	static const struct metric_family_desc functions = {
		"podprof_runtime_functions", METRIC_GAUGE, "Cached functions of language runtimes.",
		NULL};
	static const struct metric_family_desc families[] = {
		[RUNTIME_FAMILY_PROCESSES] =
			{"podprof_runtime_processes", METRIC_GAUGE,
			 "Sampled processes with a language runtime, by version and state.", NULL},
		[RUNTIME_FAMILY_REFUSED] =
			{"podprof_runtime_processes_refused", METRIC_COUNTER,
			 "Lookups of a language runtime in processes above their owner's share.",
			 NULL},
		[RUNTIME_FAMILY_BYTES] = {"podprof_runtime_bytes", METRIC_GAUGE,
					  "Memory of names and lines of language runtimes.",
					  "bytes"},
	};
	const struct runtimes *rs = runtimes;

	metric_by_name(sink, &frames, "outcome", rs->outcomes, outcome_names, RUNTIMES_OUTCOME_MAX);
	metric_family(sink, &functions);
	metric_u64(sink, HASH_COUNT(rs->functions), NULL, 0);
	for (enum runtime_family family = 0; family < RUNTIME_FAMILY_MAX; family++) {
		metric_family(sink, &families[family]);
		for (size_t i = 0; i < rs->opts.n; i++)
			if (rs->opts.table[i] && rs->opts.table[i]->collect)
				rs->opts.table[i]->collect(rs->readers[i], family, sink);
	}
}

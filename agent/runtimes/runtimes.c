// SPDX-License-Identifier: Apache-2.0
/*
 * A function becomes an image (procmap/image.h) with its first frame: immutable, names included. So
 * the report thread names a frame after the process has gone, and equal functions of several
 * processes are equal frames. A table deduplicates images by content. A second table keeps the
 * result for a frame's words, so that a frame of a hot stack costs a single lookup. The readers own
 * all data that is read from a process by address.
 */
#include "runtimes/runtimes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/utf8.h"
#include "base/share.h"
#include "procmap/address_space.h"
#include "runtimes/runtime_budget.h"

/* Bytes of malloc() for a function and its image, with six pieces. */
#define FUNCTION_PIECES 96

/* Frames with a name that are remembered, 152 bytes each: 4.75 MiB. Reached: all are forgotten, and
 * named again. */
#define RUNTIMES_FRAMES_MAX 32768

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
	struct image *image;	     /* owns a reference */
	struct share_holder *holder; /* of the owner whose frame made it */
	size_t n_bytes;
	UT_hash_handle hh;
	size_t n;
	char key[];
};

/* The words of a frame name a single function as long as the process runs a single program. */
struct known_key {
	uint64_t pid;
	uint64_t start_ns;
	uint64_t exec_id;
	uint64_t runtime;
	uint64_t words[2];
};

struct known {
	struct known_key key;
	struct frame frame; /* owns a reference */
	uint64_t until_ns;  /* runtime_place.until_ns */
	bool is_used;	    /* since the last sweep */
	UT_hash_handle hh;
};

struct runtimes {
	struct runtimes_opts opts;
	void **readers; /* by runtime */
	struct runtime_budget budget;
	struct function *functions;
	struct share_holder *holders; /* of bytes of @functions, by owner */
	size_t n_function_bytes;
	struct known *known;
	uint64_t outcomes[RUNTIMES_OUTCOME_MAX];
};

DEFINE_CLEANUP(struct runtimes *, runtimes_freep, runtimes_free);

/* ---------------------------------------------------------------- functions */

/* Key of a function: kind, runtime, names, first line; or the frames that are inlined. */
struct function_key {
	size_t n;
	char bytes[64 + RUNTIMES_NAME_MAX + RUNTIMES_FILE_MAX];
};
_Static_assert(1 + RUNTIMES_PLACES_MAX * sizeof(struct frame) <=
		       64 + RUNTIMES_NAME_MAX + RUNTIMES_FILE_MAX,
	       "both keys fit");

/* Functions or known frames came or went. */
static void count_common(struct runtimes *rs)
{
	rs->budget.n_common =
		rs->n_function_bytes + HASH_COUNT(rs->known) * (sizeof(struct known) + 16);
}

static size_t bytes_of(const struct function_key *key, const struct image *image)
{
	size_t n = sizeof(struct function) + key->n + sizeof(*image) + strlen(image->path) +
		   FUNCTION_PIECES;

	if (image->places)
		return n + image->n_places * sizeof(*image->places);
	return n + strlen(image->function.name) + strlen(image->function.file);
}

/* The last quarter has room for owners with few functions, whatever the others do. */
static bool has_room(const struct runtimes *rs, const struct share_holder *holder, size_t n)
{
	const size_t max = RUNTIMES_FUNCTIONS_BYTES_MAX, total = rs->n_function_bytes;

	return total + n <= max && (total <= max / 4 * 3 || share_allows(max, total, holder->held));
}

static void function_drop(struct runtimes *rs, struct function *f)
{
	HASH_DEL(rs->functions, f);
	rs->n_function_bytes -= f->n_bytes;
	f->holder->held -= f->n_bytes;
	share_holder_put(&rs->holders, f->holder);
	image_unref(f->image);
	free(f);
	count_common(rs);
}

/* Of @holder, which has no more bytes on failure. 0, RUNTIMES_FULL, -ENOMEM. */
static int function_hold(struct runtimes *rs, const struct function_key *key, struct image *image,
			 struct share_holder *holder)
{
	const size_t n = bytes_of(key, image);
	bool hash_oom = false;
	struct function *f;

	if (image->kind == IMAGE_RUNTIME && !has_room(rs, holder, n))
		return RUNTIMES_FULL;
	f = calloc(1, sizeof(*f) + key->n);
	if (!f)
		return -ENOMEM;
	f->n = key->n;
	memcpy(f->key, key->bytes, key->n);
	HASH_ADD_KEYPTR(hh, rs->functions, f->key, f->n, f);
	if (hash_oom) {
		free(f);
		return -ENOMEM;
	}
	f->image = image_ref(image);
	f->holder = holder;
	f->n_bytes = n;
	holder->held += n;
	rs->n_function_bytes += n;
	count_common(rs);
	return 0;
}

/* Keeps @image, with a reference of its own. 0, RUNTIMES_FULL, -ENOMEM. */
static int function_add(struct runtimes *rs, uint64_t owner, const struct function_key *key,
			struct image *image)
{
	struct share_holder *holder = share_holder_get(&rs->holders, owner);
	int r = holder ? function_hold(rs, key, image, holder) : -ENOMEM;

	share_holder_put(&rs->holders, holder);
	return r;
}

/* A new reference to the image of the key; NULL: there is none. */
static struct image *function_find(const struct runtimes *rs, const struct function_key *key)
{
	struct function *f;

	HASH_FIND(hh, rs->functions, key->bytes, key->n, f);
	return f ? image_ref(f->image) : NULL;
}

/* A reference to the image of a function. 0, RUNTIMES_FULL, -ENOMEM. */
static int function_get(struct runtimes *rs, uint64_t owner, enum image_kind kind, const char *path,
			const struct image_function *function, struct image **ret)
{
	char name[RUNTIMES_NAME_MAX], file[RUNTIMES_FILE_MAX];
	const struct image_function clean = {name, file, function->start_line};
	struct function_key key;
	struct image *image;
	int r;

	snprintf(name, sizeof(name), "%s", function->name);
	snprintf(file, sizeof(file), "%s", function->file);
	utf8_make_printable(name);
	utf8_make_printable(file);
	key.n = (size_t)snprintf(key.bytes, sizeof(key.bytes), "%d%.40s%c%u %s%c%s", (int)kind,
				 path, 0, clean.start_line, name, 0, file);
	image = function_find(rs, &key);
	if (!image) {
		if (image_new_function(kind, path, &clean, &image))
			return -ENOMEM;
		r = function_add(rs, owner, &key, image);
		if (r) {
			image_unref(image);
			return r;
		}
	}
	*ret = image;
	return 0;
}

/* A reference to the image of functions that are inlined, @n frames as in image_new_inlined(). The
 * image has references to the images of the frames, so their addresses are a key as long as the
 * image lives. */
static int inlined_get(struct runtimes *rs, uint64_t owner, const struct frame *places, size_t n,
		       struct image **ret)
{
	struct function_key key = {.n = 1 + n * sizeof(*places), .bytes = "i"};
	struct image *image;
	int r;

	memcpy(key.bytes + 1, places, n * sizeof(*places));
	image = function_find(rs, &key);
	if (!image) {
		if (image_new_inlined(places, n, &image))
			return -ENOMEM;
		r = function_add(rs, owner, &key, image);
		if (r) {
			image_unref(image);
			return r;
		}
	}
	*ret = image;
	return 0;
}

/* ---------------------------------------------------------------- known frames */

static void known_drop(struct runtimes *rs, struct known *k)
{
	HASH_DEL(rs->known, k);
	image_unref(k->frame.image);
	free(k);
	count_common(rs);
}

/* Drops the frames that were not used since the last time, or all. */
static void known_sweep(struct runtimes *rs, bool all)
{
	struct known *k, *next;

	HASH_ITER(hh, rs->known, k, next) {
		if (all || !k->is_used)
			known_drop(rs, k);
		else
			k->is_used = false;
	}
}

static struct known_key known_key_of(const struct address_space_who *who,
				     const struct frame_record *frame)
{
	return (struct known_key){
		who->pid.pid,
		who->start_ns,
		who->exec_id,
		frame->runtime,
		{frame->words[0], frame->words[1]},
	};
}

static struct known *known_find(const struct runtimes *rs, const struct known_key *key)
{
	struct known *k;

	HASH_FIND(hh, rs->known, key, sizeof(*key), k);
	return k;
}

/* Whether the name is to be proved again. */
static bool is_due(const struct known *k)
{
	return k->until_ns && nsec_monotonic() >= k->until_ns;
}

/* Takes the reference of @frame. 0 or -ENOMEM. */
static int known_add(struct runtimes *rs, const struct known_key *key, const struct frame *frame,
		     uint64_t until_ns)
{
	bool hash_oom = false;
	struct known *k;

	if (HASH_COUNT(rs->known) >= RUNTIMES_FRAMES_MAX)
		known_sweep(rs, true);
	k = calloc(1, sizeof(*k));
	if (k) {
		k->key = *key;
		k->frame = *frame;
		k->until_ns = until_ns;
		k->is_used = true;
		HASH_ADD(hh, rs->known, key, sizeof(k->key), k);
	}
	if (!k || hash_oom) {
		image_unref(frame->image);
		free(k);
		return -ENOMEM;
	}
	count_common(rs);
	return 0;
}

void runtimes_sweep(struct runtimes *rs)
{
	struct function *f, *next;

	known_sweep(rs, false);
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
	for (uint32_t i = 0; i < rs->opts.n; i++)
		if (rs->opts.table[i] && rs->opts.table[i]->saw)
			rs->opts.table[i]->saw(rs->readers[i], who);
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

uint32_t runtimes_exe(const struct runtimes *rs, const struct address_space *space,
		      const void **ret, size_t *ret_n)
{
	for (uint32_t i = 0; i < rs->opts.n; i++) {
		const struct runtime *rt = rs->opts.table[i];

		*ret = rt && rt->exe ? rt->exe(rs->readers[i], space, ret_n) : NULL;
		if (*ret)
			return i;
	}
	return FRAME_RUNTIME_NONE;
}

bool runtimes_has_excerpts(const struct runtimes *rs, uint32_t number)
{
	const struct runtime *rt = runtime_of(rs, number);

	return rt && rt->has_excerpts;
}

const void *runtimes_excerpt(const struct runtimes *rs, uint32_t number,
			     const struct address_space_who *who, const struct address_space *space,
			     const uint8_t *bytes, size_t n)
{
	const struct runtime *rt = runtime_of(rs, number);

	return rt && rt->excerpt ? rt->excerpt(rs->readers[number], who, space, bytes, n) : NULL;
}

/* The readers' form of a frame: the address of code that is no function does not count. */
static struct frame_record to_read(const struct frame_record *frame)
{
	struct frame_record record = *frame;

	if (frame_is_code(frame))
		record.words[1] = 0;
	return record;
}

bool runtimes_wants(const struct runtimes *rs, const struct address_space_who *who,
		    const struct frame_record *frame)
{
	const struct frame_record record = to_read(frame);
	const struct runtime *rt = runtime_of(rs, frame->runtime);
	const struct known *known;
	struct known_key key;

	if (frame->kind != FRAME_RUNTIME || !rt || !rt->wants)
		return false;
	/* Nearly all frames are known. The reader learns once a window that a function is in use.
	 */
	key = known_key_of(who, &record);
	known = known_find(rs, &key);
	return !(known && known->is_used && !is_due(known)) &&
	       rt->wants(rs->readers[frame->runtime], who, &record);
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
static int resolve_unnamed(struct runtimes *rs, uint64_t owner, uint32_t number,
			   enum outcome outcome, const char *why, struct frame *ret)
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
	return function_get(rs, owner, IMAGE_BROKEN, path, &function, &ret->image);
}

/* The frame of @place with the functions inlined there. 0, RUNTIMES_FULL, -ENOMEM. */
static int place_get(struct runtimes *rs, uint64_t owner, const char *path,
		     const struct runtime_place *place, struct frame *ret)
{
	struct frame places[RUNTIMES_PLACES_MAX];
	struct image *image = NULL;
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; !r && i <= place->n_inlined; i++) {
		const struct runtime_place *p = i < place->n_inlined ? &place->inlined[i] : place;

		r = function_get(rs, owner, IMAGE_RUNTIME, path, &p->function, &places[i].image);
		places[i].vaddr = p->line;
		n += !r;
	}
	if (!r && n == 1)
		image = image_ref(places[0].image);
	else if (!r)
		r = inlined_get(rs, owner, places, n, &image);
	for (size_t i = 0; i < n; i++)
		image_unref(places[i].image);
	if (!r)
		*ret = (struct frame){image, place->line};
	return r;
}

static int resolve_named(struct runtimes *rs, const struct address_space_who *who,
			 const struct frame_record *frame, struct frame *ret)
{
	const struct runtime *rt = runtime_of(rs, frame->runtime);
	const struct known_key key = known_key_of(who, frame);
	struct runtime_place place = {.function = {.file = ""}};
	struct known *known = known_find(rs, &key);
	struct frame named;
	char path[48];
	bool is_whole;
	int r;

	if (known && is_due(known)) {
		known_drop(rs, known);
		known = NULL;
	}
	if (known) {
		known->is_used = true;
		rs->outcomes[RUNTIMES_NAMED]++;
		*ret = (struct frame){image_ref(known->frame.image), known->frame.vaddr};
		return 0;
	}
	r = rt->frame_name(rs->readers[frame->runtime], who, frame, &place);
	if (r == -ENOMEM)
		return r;
	is_whole = !r;
	if (r && r != RUNTIME_NO_PLACE)
		return resolve_unnamed(rs, who->owner, frame->runtime, RUNTIMES_GONE, "gone", ret);
	snprintf(path, sizeof(path), "[%.40s]", rt->name);
	r = place_get(rs, who->owner, path, &place, &named);
	if (r == RUNTIMES_FULL)
		return resolve_unnamed(rs, who->owner, frame->runtime, RUNTIMES_FULL,
				       "too many functions", ret);
	if (r)
		return r;
	if (is_whole) { /* else the place may be read later */
		image_ref(named.image);
		r = known_add(rs, &key, &named, place.until_ns);
	}
	if (r) {
		image_unref(named.image);
		return r;
	}
	rs->outcomes[RUNTIMES_NAMED]++;
	*ret = named;
	return 0;
}

int runtimes_resolve(struct runtimes *rs, const struct address_space_who *who,
		     const struct frame_record *frame, struct frame *ret)
{
	const struct frame_record record = to_read(frame);

	if (frame->kind == FRAME_BROKEN)
		return resolve_unnamed(rs, who->owner, frame->runtime, RUNTIMES_BROKEN,
				       reason_names[frame->reason], ret);
	if (!runtime_of(rs, frame->runtime))
		return resolve_unnamed(rs, who->owner, frame->runtime, RUNTIMES_NO_READER,
				       "no reader", ret);
	return resolve_named(rs, who, &record, ret);
}

/* ---------------------------------------------------------------- life */

int runtimes_new(const struct runtimes_opts *opts, struct runtimes **ret)
{
	_cleanup_(runtimes_freep) struct runtimes *rs = calloc(1, sizeof(*rs));

	if (!rs)
		return -ENOMEM;
	rs->opts = *opts;
	rs->opts.host.budget = &rs->budget;
	if (!rs->opts.table) {
		rs->opts.table = all_runtimes;
		rs->opts.n = array_size(all_runtimes);
	}
	rs->readers = calloc(rs->opts.n, sizeof(*rs->readers));
	if (!rs->readers)
		return -ENOMEM;
	for (size_t i = 0; i < rs->opts.n; i++) {
		const struct runtime *rt = rs->opts.table[i];
		int r = rt && rt->new ? rt->new (&rs->opts.host, &rs->readers[i]) : 0;

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
	known_sweep(rs, true);
	HASH_ITER(hh, rs->functions, f, next)
		function_drop(rs, f);
	for (size_t i = 0; rs->readers && i < rs->opts.n; i++)
		if (rs->readers[i])
			rs->opts.table[i]->free(rs->readers[i]);
	runtime_budget_deinit(&rs->budget);
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
		[RUNTIME_FAMILY_EVICTED] =
			{"podprof_runtime_evictions", METRIC_COUNTER,
			 "Functions of language runtimes dropped at the ceiling of their memory.",
			 NULL},
	};
	static const struct metric_family_desc common = {
		"podprof_runtime_profile_bytes", METRIC_GAUGE,
		"Memory of functions of language runtimes in profiles.", "bytes"};
	const struct runtimes *rs = runtimes;

	metric_by_name(sink, &frames, "outcome", rs->outcomes, outcome_names, RUNTIMES_OUTCOME_MAX);
	metric_family(sink, &functions);
	metric_u64(sink, HASH_COUNT(rs->functions), NULL, 0);
	metric_family(sink, &common);
	metric_u64(sink, rs->budget.n_common, NULL, 0);
	for (enum runtime_family family = 0; family < RUNTIME_FAMILY_MAX; family++) {
		metric_family(sink, &families[family]);
		for (size_t i = 0; i < rs->opts.n; i++)
			if (rs->opts.table[i] && rs->opts.table[i]->collect)
				rs->opts.table[i]->collect(rs->readers[i], family, sink);
	}
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Go's own tables name every function, also in stripped programs. The code of the runtime's
 * functions contains the addresses of the variables used (gofile/coderefs.h), and in all
 * releases a few small functions are never inlined. gofile/goversion.c has the functions with
 * several names; the list here has the newest names.
 *
 *   mProf_FlushLocked     loads mbuckets, as the first word; up to 1.18 mProf before it
 *   mProf_Free            loads the cycle, as the first 4 bytes
 *   mProf_PostSweep       the same, if the program calls runtime.GC()
 *   profilealloc          loads MemProfileRate, and mcache0
 *   mallocgcLarge         loads MemProfileRate
 *   (*mcache).allocLarge  takes the address of memstats.heapStats, to acquire and then to
 *                         release it; then, since 1.19, of gcController.totalAlloc, in
 *                         1.17 of gcController.heapLive; then of gcController
 *   blockProfileInternal  loads bbuckets
 *   mutexProfileInternal  loads xbuckets
 *   stkbucket             takes the addresses of mbuckets, xbuckets and bbuckets in this
 *                         order; up to 1.18 loads and stores each. Present in every
 *                         program; the two above only if the program reads such profiles
 *   blockevent            loads blockprofilerate
 *   mutexevent            loads mutexprofilerate
 *   ticksPerSecond        loads ticks.val
 *   allgadd               loads and stores all three words of allgs; at the end takes the
 *                         addresses of allglen and allglock
 *   waitReason.String     takes the address of waitReasonStrings
 *   gfpurge               takes the address of sched.gFree, its lock, first and last; in
 *                         between stores the heads of the two lists behind it, each with
 *                         its length since 1.25
 *   gdestroy              takes the address of sched.ngsys, shortly before that of
 *                         sched.gFree
 *   procresize            loads all three words of allp, the first slice in it, and stores
 *                         the first two
 *
 * An address counts only if it is aligned and in a writable segment. MemProfileRate must be
 * certain, because podprof may write to it. Go's default rate as the value in the file
 * distinguishes MemProfileRate from mcache0, the other word loaded by profilealloc; in a process
 * the place distinguishes the two. From 1.17 to 1.19 the file has no value, but the package's
 * initialization stores it. In addition the allocator has to load the same word.
 *
 * Sources: the Go project's src/runtime/mprof.go and malloc.go, of the releases in
 * gofile/goversion.c.
 */
#include "goheap/govars.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "elf/elffile.h"
#include "gofile/coderefs.h"
#include "gofile/gofuncs.h"
#include "gofile/gomodule.h"
#include "gofile/goversion.h"

/* Bytes examined of a function; mallocgc has 3,000. Reached: variables used further on are not
 * found: `unknown_layout`. */
#define GOVARS_CODE_MAX (16u << 10)
/* References of a function; runtime.init has 60. Reached: as above. */
#define GOVARS_REFS_MAX 512

#define DEFAULT_RATE 524288u
/* Offset in moduledata of the begin and end of noptrdata. */
#define NOPTRDATA    192u

/* Functions with the same name in all releases. */
enum func {
	FLUSH,
	PROF_FREE,
	POST_SWEEP,
	PROFILE_ALLOC,
	INIT,
	ALLOC_LARGE,
	NEW_RECORD,
	ALL_ADD,
	WAIT_REASON,
	FREE_PURGE,
	PROC_RESIZE,
	N_FUNCS
};

static const char *const func_names[N_FUNCS] = {
	[FLUSH] = "runtime.mProf_FlushLocked",
	[PROF_FREE] = "runtime.mProf_Free",
	[POST_SWEEP] = "runtime.mProf_PostSweep",
	[PROFILE_ALLOC] = "runtime.profilealloc",
	[INIT] = "runtime.init",
	[ALLOC_LARGE] = "runtime.(*mcache).allocLarge",
	[NEW_RECORD] = "runtime.stkbucket",
	[WAIT_REASON] = "runtime.waitReason.String",
	[ALL_ADD] = "runtime.allgadd",
	[FREE_PURGE] = "runtime.gfpurge",
	[PROC_RESIZE] = "runtime.procresize",
};

/* The references of a function to variables. */
struct refs {
	struct coderef items[GOVARS_REFS_MAX];	/* in the order of the code */
	struct coderef sorted[GOVARS_REFS_MAX]; /* by address, kind and size */
	size_t n;
};

/* Memory for variables. */
struct range {
	uint64_t start;
	uint64_t limit;
};

struct data {
	struct range *ranges; /* writable, ascending, apart from each other */
	size_t n;
	struct elffile_segment relro; /* or of no size */
};

static int compare_ranges(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Joins ranges that overlap. */
static void join_ranges(struct data *data)
{
	size_t n = 0;

	qsort(data->ranges, data->n, sizeof(*data->ranges), compare_ranges);
	for (size_t i = 0; i < data->n; i++) {
		const struct range *r = &data->ranges[i];
		struct range *last = n ? &data->ranges[n - 1] : NULL;

		if (!last || r->start > last->limit)
			data->ranges[n++] = *r;
		else if (r->limit > last->limit)
			last->limit = r->limit;
	}
	data->n = n;
}

static int data_init(struct data *data, const struct elffile *file)
{
	size_t n;
	const struct elffile_segment *segments = elffile_segments(file, &n);

	*data = (struct data){.ranges = calloc(n + 1, sizeof(*data->ranges))};
	if (!data->ranges)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct range *r = &data->ranges[data->n];

		r->start = segments[i].vaddr;
		if ((segments[i].flags & PF_W) &&
		    !__builtin_add_overflow(r->start, segments[i].memsz, &r->limit))
			data->n++;
	}
	join_ranges(data);
	if (elffile_relro(file, &data->relro))
		data->relro.memsz = 0;
	return 0;
}

static void data_deinit(struct data *data)
{
	free(data->ranges);
}

static bool is_writable(const struct data *data, uint64_t vaddr)
{
	size_t low = 0, high = data->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (data->ranges[mid].start <= vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	return low && vaddr < data->ranges[low - 1].limit;
}

/* Whether a variable of @bytes may be there. Excluded is data that is read-only after
 * relocation, such as the table by which libraries find thread-local memory: before Go 1.17 each
 * function begins with a load from that table. */
static bool is_data(const struct data *data, uint64_t vaddr, uint8_t bytes)
{
	return vaddr - data->relro.vaddr >= data->relro.memsz && vaddr % bytes == 0 &&
	       is_writable(data, vaddr);
}

static int compare_refs(const void *a, const void *b)
{
	const struct coderef *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	return x->kind != y->kind ? (int)x->kind - (int)y->kind : x->bytes - y->bytes;
}

/* Keeps the references to variables. */
static void sort_refs(const struct data *data, struct refs *refs)
{
	size_t n = 0;

	for (size_t i = 0; i < refs->n; i++) {
		const struct coderef *ref = &refs->items[i];

		if (is_data(data, ref->vaddr, ref->kind == CODEREF_ADDRESS ? 8 : ref->bytes))
			refs->items[n++] = *ref;
	}
	refs->n = n;
	memcpy(refs->sorted, refs->items, n * sizeof(*refs->sorted));
	qsort(refs->sorted, n, sizeof(*refs->sorted), compare_refs);
}

static int read_refs(const struct elffile *file, const struct data *data,
		     const struct gofuncs_one *func, struct refs *ret)
{
	_cleanup_(freep) uint8_t *code = NULL;
	uint64_t off, n = func->end - func->entry;
	int r;

	ret->n = 0;
	if (!func->entry || !elffile_off_of_vaddr(file, func->entry, &off))
		return 0;
	if (n > GOVARS_CODE_MAX)
		n = GOVARS_CODE_MAX;
	code = malloc(n);
	if (!code)
		return -ENOMEM;
	r = elffile_read(file, off, code, n);
	if (r)
		return r < 0 ? r : 0;
	ret->n = coderefs_find(elffile_machine(file), code, n, func->entry, ret->items,
			       GOVARS_REFS_MAX);
	if (ret->n > GOVARS_REFS_MAX)
		ret->n = GOVARS_REFS_MAX;
	sort_refs(data, ret);
	return 0;
}

/**
 * struct code - all examined functions
 * @n:     number of functions: enum func, followed by all names of enum goversion_func
 * @first: index of the newest name of each of enum goversion_func; one more for the end
 * @refs:  references of each; empty for GOVERSION_READ_HEAP, where only the function's presence
 *         matters
 */
struct code {
	size_t n;
	size_t first[GOVERSION_FUNCS + 1];
	struct gofuncs_one funcs[GOFUNCS_NAMES_MAX];
	struct refs refs[GOFUNCS_NAMES_MAX];
};

_Static_assert(N_FUNCS + GOVERSION_FUNCS * GOVERSION_NAMES <= GOFUNCS_NAMES_MAX, "room for all");

static int code_read(const struct elffile *file, const struct gomodule *module, struct code *c)
{
	_cleanup_(data_deinit) struct data data = {.ranges = NULL};
	const char *names[GOFUNCS_NAMES_MAX];
	int r;

	memcpy(names, func_names, sizeof(func_names));
	c->n = N_FUNCS;
	for (int func = 0; func < GOVERSION_FUNCS; func++) {
		c->first[func] = c->n;
		c->n += goversion_names((enum goversion_func)func, names + c->n);
	}
	c->first[GOVERSION_FUNCS] = c->n;
	r = data_init(&data, file);
	if (!r)
		r = gofuncs_find(file, module, names, c->n, c->funcs);
	for (size_t i = 0; !r && i < c->n; i++)
		if (i < c->first[GOVERSION_READ_HEAP] || i >= c->first[GOVERSION_READ_HEAP + 1])
			r = read_refs(file, &data, &c->funcs[i], &c->refs[i]);
	return r;
}

/* The references of the present function with the newest name. */
static const struct refs *newest(const struct code *c, enum goversion_func func)
{
	size_t i = c->first[func];

	while (i + 1 < c->first[func + 1] && !c->funcs[i].entry)
		i++;
	return &c->refs[i];
}

static bool has_function(const struct code *c, enum goversion_func func)
{
	for (size_t i = c->first[func]; i < c->first[func + 1]; i++)
		if (c->funcs[i].named)
			return true;
	return false;
}

static bool is_access(const struct coderef *ref, enum coderef_kind kind, uint8_t bytes)
{
	return ref->kind == kind && ref->bytes == bytes;
}

static uint64_t first_load(const struct refs *refs, uint8_t bytes)
{
	for (size_t i = 0; i < refs->n; i++)
		if (is_access(&refs->items[i], CODEREF_LOAD, bytes))
			return refs->items[i].vaddr;
	return 0;
}

/* In the sorted references; NULL: none. */
static const struct coderef *find_access(const struct refs *refs, enum coderef_kind kind,
					 uint8_t bytes, uint64_t vaddr)
{
	const struct coderef key = {.vaddr = vaddr, .kind = kind, .bytes = bytes};

	return bsearch(&key, refs->sorted, refs->n, sizeof(key), compare_refs);
}

static bool has_access(const struct refs *refs, enum coderef_kind kind, uint8_t bytes,
		       uint64_t vaddr)
{
	return find_access(refs, kind, bytes, vaddr);
}

static bool is_default_rate(const struct elffile *file, uint64_t vaddr)
{
	uint64_t off, value = 0;

	return elffile_off_of_vaddr(file, vaddr, &off) &&
	       elffile_read(file, off, &value, sizeof(value)) == 0 && value == DEFAULT_RATE;
}

/* Whether a variable is among those with an initial value. In a process this is the only
 * evidence, because the value may have changed. */
static bool began_with_value(const struct elffile *file, const struct gomodule *module,
			     uint64_t vaddr)
{
	uint64_t off, noptrdata[2];

	return module->data && elffile_off_of_vaddr(file, module->data + NOPTRDATA, &off) &&
	       elffile_read(file, off, noptrdata, sizeof(noptrdata)) == 0 &&
	       vaddr >= noptrdata[0] && vaddr < noptrdata[1];
}

static bool is_rate(const struct elffile *file, const struct gomodule *module,
		    const struct refs *init, uint64_t vaddr)
{
	if (has_access(init, CODEREF_STORE, 8, vaddr))
		return true;
	return elffile_is_process(file) ? began_with_value(file, module, vaddr)
					: is_default_rate(file, vaddr);
}

static uint64_t find_rate(const struct elffile *file, const struct gomodule *module,
			  const struct refs *profile_alloc, const struct refs *malloc,
			  const struct refs *init)
{
	for (size_t i = 0; i < profile_alloc->n; i++) {
		const struct coderef *ref = &profile_alloc->items[i];

		if (!is_access(ref, CODEREF_LOAD, 8) ||
		    !has_access(malloc, CODEREF_LOAD, 8, ref->vaddr))
			continue;
		if (is_rate(file, module, init, ref->vaddr))
			return ref->vaddr;
	}
	return 0;
}

/* The variables whose addresses are taken, in the order of the code. Returns their number. */
static size_t taken(const struct refs *refs, uint64_t ret[GOVARS_REFS_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < refs->n; i++)
		if (refs->items[i].kind == CODEREF_ADDRESS)
			ret[n++] = refs->items[i].vaddr;
	return n;
}

/* Whether some release has totalAlloc at this offset in gcController. */
static bool is_total_alloc(uint64_t vaddr, uint64_t controller)
{
	for (const struct goversion *v = goversion_newest(); v; v = goversion_older(v))
		if (v->pacer.total_alloc && vaddr - controller == v->pacer.total_alloc)
			return true;
	return false;
}

static bool is_heap_live(uint64_t vaddr, uint64_t controller)
{
	for (const struct goversion *v = goversion_newest(); v; v = goversion_older(v))
		if (v->pacer.heap_live && vaddr - controller == v->pacer.heap_live)
			return true;
	return false;
}

/* Addresses taken after heapStats: first totalAlloc or heapLive, in 1.18 the controller at once. */
static void find_controller(const uint64_t *addresses, size_t n, struct govars *ret)
{
	ret->controller = n ? addresses[0] : 0;
	for (size_t i = 1; i < n; i++) {
		if (is_total_alloc(addresses[0], addresses[i]))
			ret->total_alloc = addresses[0];
		else if (is_heap_live(addresses[0], addresses[i]))
			ret->heap_live = addresses[0];
		else
			continue;
		ret->controller = addresses[i];
		return;
	}
}

static bool is_taken_twice(const struct refs *refs, uint64_t vaddr)
{
	const struct coderef *found = find_access(refs, CODEREF_ADDRESS, 0, vaddr);
	const size_t i = found ? (size_t)(found - refs->sorted) : refs->n;

	return (i && i < refs->n && compare_refs(found, found - 1) == 0) ||
	       (i + 1 < refs->n && compare_refs(found, found + 1) == 0);
}

/* Find the first address that is taken twice, and the addresses after its last use. */
static void find_totals(const struct refs *refs, struct govars *ret)
{
	uint64_t addresses[GOVARS_REFS_MAX];
	size_t n = taken(refs, addresses), first = 0, last = 0;

	while (first < n && !is_taken_twice(refs, addresses[first]))
		first++;
	for (size_t i = first + 1; i < n; i++)
		if (addresses[i] == addresses[first])
			last = i;
	if (!last)
		return;
	ret->heap_stats = addresses[last];
	find_controller(addresses + last + 1, n - last - 1, ret);
}

/* allglen is beside the lock that is taken first and released last. */
static uint64_t find_allglen(const struct refs *refs)
{
	uint64_t addresses[GOVARS_REFS_MAX];
	size_t n = taken(refs, addresses);

	return n >= 3 && addresses[0] == addresses[n - 1] ? addresses[n - 2] : 0;
}

static void find_free(const struct refs *refs, struct govars_sched *ret)
{
	uint64_t addresses[GOVARS_REFS_MAX];
	size_t n = taken(refs, addresses);
	uint64_t lock = n ? addresses[0] : 0;

	if (n < 2 || addresses[n - 1] != lock || !has_access(refs, CODEREF_STORE, 8, lock + 8))
		return;
	ret->split = has_access(refs, CODEREF_STORE, 8, lock + 24);
	if (ret->split || has_access(refs, CODEREF_STORE, 8, lock + 16))
		ret->free = lock;
}

/* Whether some release has ngsys at this distance before gFree. */
static bool is_system(uint64_t distance)
{
	for (const struct goversion *v = goversion_newest(); v; v = goversion_older(v))
		if (distance == v->system)
			return true;
	return false;
}

static uint64_t find_system(const struct refs *refs, uint64_t free)
{
	uint64_t addresses[GOVARS_REFS_MAX];
	size_t n = taken(refs, addresses);

	for (size_t i = 0; free && i < n; i++)
		if (is_system(free - addresses[i]))
			return addresses[i];
	return 0;
}

static uint64_t find_allp(const struct refs *refs)
{
	for (size_t i = 0; i < refs->n; i++) {
		uint64_t slice = refs->items[i].vaddr - 8; /* the code reads its length first */

		if (has_access(refs, CODEREF_LOAD, 8, slice) &&
		    has_access(refs, CODEREF_LOAD, 8, slice + 8) &&
		    has_access(refs, CODEREF_LOAD, 8, slice + 16) &&
		    has_access(refs, CODEREF_STORE, 8, slice) &&
		    has_access(refs, CODEREF_STORE, 8, slice + 8))
			return slice;
	}
	return 0;
}

/* The code may use any of the slice's words first. */
static uint64_t find_allgs(const struct refs *refs)
{
	for (size_t i = 0; i < 3 * refs->n; i++) {
		uint64_t slice = refs->items[i / 3].vaddr - i % 3 * 8;

		if (has_access(refs, CODEREF_LOAD, 8, slice) &&
		    has_access(refs, CODEREF_LOAD, 8, slice + 8) &&
		    has_access(refs, CODEREF_LOAD, 8, slice + 16) &&
		    has_access(refs, CODEREF_STORE, 8, slice + 8) &&
		    has_access(refs, CODEREF_STORE, 8, slice + 16))
			return slice;
	}
	return 0;
}

static void find_goroutines(const struct refs *refs, struct govars *ret)
{
	uint64_t addresses[GOVARS_REFS_MAX];

	ret->allgs = find_allgs(&refs[ALL_ADD]);
	if (taken(&refs[WAIT_REASON], addresses))
		ret->wait_reasons = addresses[0];
}

static void find_sched(const struct code *c, struct govars_sched *ret)
{
	struct govars_sched found = {
		.allglen = find_allglen(&c->refs[ALL_ADD]),
		.allp = find_allp(&c->refs[PROC_RESIZE]),
	};

	find_free(&c->refs[FREE_PURGE], &found);
	found.system = find_system(newest(c, GOVERSION_GO_EXIT), found.free);
	if (found.allglen && found.allp && found.system)
		*ret = found;
}

/* The first word loaded by a function, for the newest name of which the function loads any. */
static uint64_t first_word(const struct code *c, enum goversion_func func)
{
	uint64_t vaddr = 0;

	for (size_t i = c->first[func]; !vaddr && i < c->first[func + 1]; i++)
		vaddr = first_load(&c->refs[i], 8);
	return vaddr;
}

/* Whether the reference is to a list with insertion at the front: its address is taken, or it is
 * loaded and stored. */
static bool is_list(const struct refs *refs, size_t i)
{
	const struct coderef *ref = &refs->items[i];

	return ref->kind == CODEREF_ADDRESS ||
	       (is_access(ref, CODEREF_LOAD, 8) && has_access(refs, CODEREF_STORE, 8, ref->vaddr));
}

/* Find the two lists after that of heap records. */
static void find_lists(const struct refs *refs, uint64_t mbuckets, uint64_t ret[2])
{
	uint64_t last = 0;
	size_t n = 0;

	for (size_t i = 0; i < refs->n && n < 3; i++) {
		uint64_t vaddr = refs->items[i].vaddr;

		if (vaddr == last || !is_list(refs, i) || (!n && vaddr != mbuckets))
			continue;
		last = vaddr;
		if (n++)
			ret[n - 2] = vaddr;
	}
	if (n < 3)
		ret[0] = ret[1] = 0;
}

/* Combine the results of two methods, unless they contradict. */
static uint64_t agreed(uint64_t a, uint64_t b)
{
	if (!a || !b)
		return a ? a : b;
	return a == b ? a : 0;
}

static void find_contention(const struct code *c, struct govars *ret)
{
	uint64_t lists[2] = {0};

	if (ret->mbuckets)
		find_lists(&c->refs[NEW_RECORD], ret->mbuckets, lists);
	ret->xbuckets = agreed(lists[0], first_word(c, GOVERSION_READ_MUTEX));
	ret->bbuckets = agreed(lists[1], first_word(c, GOVERSION_READ_BLOCK));
	ret->block_rate = first_word(c, GOVERSION_BLOCK_EVENT);
	ret->mutex_rate = first_word(c, GOVERSION_MUTEX_EVENT);
	ret->ticks = first_word(c, GOVERSION_TICKS);
}

/* If two functions load the cycle, they must agree. */
static uint64_t find_cycle(const struct refs *refs)
{
	return agreed(first_load(&refs[PROF_FREE], 4), first_load(&refs[POST_SWEEP], 4));
}

int govars_find(const struct elffile *file, const struct gomodule *module, struct govars *ret)
{
	_cleanup_(freep) struct code *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	r = code_read(file, module, c);
	if (r)
		return r;
	*ret = (struct govars){
		.mbuckets = first_load(&c->refs[FLUSH], 8),
		.rate = find_rate(file, module, &c->refs[PROFILE_ALLOC],
				  newest(c, GOVERSION_MALLOC), &c->refs[INIT]),
		.cycle = find_cycle(c->refs),
		.can_profile = has_function(c, GOVERSION_READ_HEAP),
	};
	find_totals(&c->refs[ALLOC_LARGE], ret);
	find_contention(c, ret);
	find_goroutines(c->refs, ret);
	find_sched(c, &ret->sched);
	ret->old_cycle = ret->cycle && has_access(&c->refs[FLUSH], CODEREF_LOAD, 4, ret->cycle);
	return 0;
}

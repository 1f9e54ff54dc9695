// SPDX-License-Identifier: Apache-2.0
/*
 * Go's own tables name every function, in stripped programs too. The runtime's functions that work
 * on a variable name its address in their code (gofile/coderefs.h), and from Go 1.16 to 1.27 a few
 * small ones are never inlined:
 *
 *	mProf_FlushLocked	loads mbuckets, as the first word; up to 1.18 mProf before it
 *	mProf_PostSweep		loads the cycle, as the first 4 bytes
 *	profilealloc		loads MemProfileRate, and mcache0
 *	mallocgc, mallocgcLarge	one of them loads MemProfileRate: mallocgcLarge where there is one
 *	(*mcache).allocLarge	takes the address of memstats.heapStats, first to acquire and then
 *to release it; then, since 1.19, that of gcController.totalAlloc, and that of gcController
 *	blockProfileInternal, before 1.23 BlockProfile	loads bbuckets
 *	mutexProfileInternal, before 1.23 MutexProfile	loads xbuckets
 *	blockevent, before 1.17 blocksampled	loads blockprofilerate
 *	mutexevent, before 1.27 called sync.event	loads mutexprofilerate
 *	ticksPerSecond, before 1.22 tickspersecond	loads ticks.val
 *
 * An address counts only if it is aligned and in a writable segment. MemProfileRate may be written
 * to, so it has to be certain. The two words that profilealloc loads are told apart by their value
 * in the file, which is Go's default rate; from 1.17 to 1.19 there is none in the file, and the
 * package's initialization stores it. And the allocator has to load the same word.
 *
 * Sources: the Go project's src/runtime/mprof.go and malloc.go, of releases 1.16 to 1.27.
 */
#include "goheap/govars.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "gofile/coderefs.h"
#include "gofile/gofuncs.h"
#include "gofile/gomodule.h"
#include "procmap/elffile.h"

/* Bytes of one function that are looked at; mallocgc has 3,000. What is behind is not seen. */
#define GOVARS_CODE_MAX (16u << 10)
/* References of one function; runtime.init has 60. */
#define GOVARS_REFS_MAX 512

#define DEFAULT_RATE 524288u

enum func {
	FLUSH,
	POST_SWEEP,
	PROFILE_ALLOC,
	MALLOC,
	MALLOC_LARGE,
	INIT,
	ALLOC_LARGE,
	READ_BLOCK,
	READ_BLOCK_OLD,
	READ_MUTEX,
	READ_MUTEX_OLD,
	BLOCK_EVENT,
	BLOCK_EVENT_OLD,
	MUTEX_EVENT,
	MUTEX_EVENT_OLD,
	TICKS,
	TICKS_OLD,
	N_CODES,
	READ_OLD = N_CODES, /* only whether these are there is asked */
	READ_NEW,
	N_FUNCS
};

static const char *const func_names[N_FUNCS] = {
	[FLUSH] = "runtime.mProf_FlushLocked",
	[POST_SWEEP] = "runtime.mProf_PostSweep",
	[PROFILE_ALLOC] = "runtime.profilealloc",
	[MALLOC] = "runtime.mallocgc",
	[MALLOC_LARGE] = "runtime.mallocgcLarge",
	[INIT] = "runtime.init",
	[ALLOC_LARGE] = "runtime.(*mcache).allocLarge",
	[READ_BLOCK] = "runtime.blockProfileInternal",
	[READ_BLOCK_OLD] = "runtime.BlockProfile",
	[READ_MUTEX] = "runtime.mutexProfileInternal",
	[READ_MUTEX_OLD] = "runtime.MutexProfile",
	[BLOCK_EVENT] = "runtime.blockevent",
	[BLOCK_EVENT_OLD] = "runtime.blocksampled",
	[MUTEX_EVENT] = "runtime.mutexevent",
	[MUTEX_EVENT_OLD] = "sync.event",
	[TICKS] = "runtime.ticksPerSecond",
	[TICKS_OLD] = "runtime.tickspersecond",
	[READ_OLD] = "runtime.MemProfile", /* the public one; since 1.23 pprof asks the other */
	[READ_NEW] = "runtime.memProfileInternal",
};

/* What a function names, in the order of its code. */
struct refs {
	struct coderef items[GOVARS_REFS_MAX];
	size_t n;
};

static int read_refs(const struct elffile *file, const struct gofuncs_one *func, struct refs *ret)
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
	return 0;
}

/* Whether a variable of @bytes may be there. */
static bool is_data(const struct elffile *file, uint64_t vaddr, uint8_t bytes)
{
	size_t n;
	const struct elffile_segment *segments = elffile_segments(file, &n);

	for (size_t i = 0; i < n; i++)
		if ((segments[i].flags & PF_W) && vaddr >= segments[i].vaddr &&
		    vaddr - segments[i].vaddr < segments[i].memsz && vaddr % bytes == 0)
			return true;
	return false;
}

static bool is_access(const struct elffile *file, const struct coderef *ref, enum coderef_kind kind,
		      uint8_t bytes)
{
	return ref->kind == kind && ref->bytes == bytes && is_data(file, ref->vaddr, bytes);
}

static uint64_t first_load(const struct elffile *file, const struct refs *refs, uint8_t bytes)
{
	for (size_t i = 0; i < refs->n; i++)
		if (is_access(file, &refs->items[i], CODEREF_LOAD, bytes))
			return refs->items[i].vaddr;
	return 0;
}

static bool has_access(const struct elffile *file, const struct refs *refs, enum coderef_kind kind,
		       uint8_t bytes, uint64_t vaddr)
{
	for (size_t i = 0; i < refs->n; i++)
		if (refs->items[i].vaddr == vaddr && is_access(file, &refs->items[i], kind, bytes))
			return true;
	return false;
}

static bool is_default_rate(const struct elffile *file, uint64_t vaddr)
{
	uint64_t off, value = 0;

	return elffile_off_of_vaddr(file, vaddr, &off) &&
	       elffile_read(file, off, &value, sizeof(value)) == 0 && value == DEFAULT_RATE;
}

static uint64_t find_rate(const struct elffile *file, const struct refs *profile_alloc,
			  const struct refs *malloc, const struct refs *init)
{
	for (size_t i = 0; i < profile_alloc->n; i++) {
		const struct coderef *ref = &profile_alloc->items[i];

		if (!is_access(file, ref, CODEREF_LOAD, 8) ||
		    !has_access(file, malloc, CODEREF_LOAD, 8, ref->vaddr))
			continue;
		if (is_default_rate(file, ref->vaddr) ||
		    has_access(file, init, CODEREF_STORE, 8, ref->vaddr))
			return ref->vaddr;
	}
	return 0;
}

/* Where totalAlloc is in gcController: 1.19, 1.20, and since 1.21. */
static bool is_total_alloc(uint64_t vaddr, uint64_t controller)
{
	return vaddr - controller == 328 || vaddr - controller == 272 || vaddr - controller == 296;
}

/* The address that is taken first and again, and the two that follow the last time. */
static void find_totals(const struct elffile *file, const struct refs *refs, struct govars *ret)
{
	uint64_t addresses[GOVARS_REFS_MAX];
	size_t n = 0, last = 0;

	for (size_t i = 0; i < refs->n; i++)
		if (refs->items[i].kind == CODEREF_ADDRESS &&
		    is_data(file, refs->items[i].vaddr, 8))
			addresses[n++] = refs->items[i].vaddr;
	for (size_t i = 0; i < n && !last; i++)
		for (size_t k = i + 1; k < n; k++)
			if (addresses[k] == addresses[i])
				last = k;
	if (!last)
		return;
	ret->heap_stats = addresses[last];
	for (size_t i = last + 1; i + 1 < n; i++)
		if (is_total_alloc(addresses[i], addresses[i + 1]))
			ret->total_alloc = addresses[i];
}

/* The first word that a function loads; @old is its name in older releases, or what did its work.
 */
static uint64_t first_word(const struct elffile *file, const struct refs *refs, enum func func,
			   enum func old)
{
	uint64_t vaddr = first_load(file, &refs[func], 8);

	return vaddr ? vaddr : first_load(file, &refs[old], 8);
}

static void find_contention(const struct elffile *file, const struct refs *refs, struct govars *ret)
{
	ret->bbuckets = first_word(file, refs, READ_BLOCK, READ_BLOCK_OLD);
	ret->xbuckets = first_word(file, refs, READ_MUTEX, READ_MUTEX_OLD);
	ret->block_rate = first_word(file, refs, BLOCK_EVENT, BLOCK_EVENT_OLD);
	ret->mutex_rate = first_word(file, refs, MUTEX_EVENT, MUTEX_EVENT_OLD);
	ret->ticks = first_word(file, refs, TICKS, TICKS_OLD);
}

int govars_find(const struct elffile *file, const struct gomodule *module, struct govars *ret)
{
	_cleanup_(freep) struct refs *refs = calloc(N_CODES, sizeof(*refs));
	struct gofuncs_one funcs[N_FUNCS];
	int r;

	if (!refs)
		return -ENOMEM;
	r = gofuncs_find(file, module, func_names, N_FUNCS, funcs);
	for (int i = 0; !r && i < N_CODES; i++)
		r = read_refs(file, &funcs[i], &refs[i]);
	if (r)
		return r;
	*ret = (struct govars){
		.mbuckets = first_load(file, &refs[FLUSH], 8),
		.rate = find_rate(file, &refs[PROFILE_ALLOC],
				  &refs[funcs[MALLOC_LARGE].entry ? MALLOC_LARGE : MALLOC],
				  &refs[INIT]),
		.cycle = first_load(file, &refs[POST_SWEEP], 4),
		.can_profile = funcs[READ_OLD].named || funcs[READ_NEW].named,
	};
	find_totals(file, &refs[ALLOC_LARGE], ret);
	find_contention(file, refs, ret);
	ret->old_cycle = ret->cycle && has_access(file, &refs[FLUSH], CODEREF_LOAD, 4, ret->cycle);
	return 0;
}

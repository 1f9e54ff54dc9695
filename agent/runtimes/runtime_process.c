// SPDX-License-Identifier: Apache-2.0
#include "runtimes/runtime_process.h"

#include <errno.h>
#include <stdlib.h>

#include "base/nsec.h"
#include "base/share.h"
#include "procmap/address_space.h"
#include "runtimes/runtime_reader.h"

/* Processes of a runtime to probe or with the runtime, 3 KB each. An owner has a share of the free
 * ones (base/share.h). Reached: a further process has native frames only;
 * `podprof_runtime_processes_refused_total`. */
#define RUNTIME_PROCESSES_MAX 8192
/* Processes that are known by excerpts alone, 3 KB each and 1 KB for each function. Reached: the
 * one that is known the longest is forgotten. */
#define RUNTIME_COPIED_MAX    512

/* Processes that are tried again within milliseconds because they are about to run the runtime,
 * each three times within 70 ms; an attempt takes 1 ms. An owner has a share of the free ones
 * (base/share.h). Reached: a further process is tried again after 1/16 s. */
#define RUNTIME_QUICK_MAX 8

/* A process with its successive programs, each a struct runtime_process. Exists as long as one of
 * these. */
struct runtime_life {
	struct {
		uint64_t pid;
		uint64_t start_ns;
	} key;
	uint64_t newest; /* exec_id */
	size_t n_processes;
	UT_hash_handle hh;
};

/* One more of @max for an owner. NULL: above its share, or no memory. */
static struct share_holder *hold(struct share_holder **holders, uint64_t owner, size_t max,
				 size_t total)
{
	struct share_holder *h = share_holder_get(holders, owner);

	if (!h)
		return NULL;
	if (!share_allows(max, total, h->held)) {
		share_holder_put(holders, h);
		return NULL;
	}
	h->held++;
	return h;
}

static void release(struct share_holder **holders, struct share_holder *h)
{
	if (!h)
		return;
	h->held--;
	share_holder_put(holders, h);
}

/* ---------------------------------------------------------------- life */

static struct runtime_life *life_find(const struct runtime_processes *m,
				      const struct runtime_process_key *key)
{
	struct runtime_life *life, sought = {.key = {key->pid, key->start_ns}};

	HASH_FIND(hh, m->lives, &sought.key, sizeof(sought.key), life);
	return life;
}

static void life_put(struct runtime_processes *m, struct runtime_life *life)
{
	if (!life || --life->n_processes)
		return;
	HASH_DEL(m->lives, life);
	free(life);
}

/* One more process of a life. NULL without memory. */
static struct runtime_life *life_get(struct runtime_processes *m,
				     const struct runtime_process_key *key)
{
	struct runtime_life *life = life_find(m, key);
	bool hash_oom = false;

	if (!life) {
		life = calloc(1, sizeof(*life));
		if (!life)
			return NULL;
		life->key.pid = key->pid;
		life->key.start_ns = key->start_ns;
		HASH_ADD(hh, m->lives, key, sizeof(life->key), life);
		if (hash_oom) {
			free(life);
			return NULL;
		}
	}
	if (life->newest < key->exec_id)
		life->newest = key->exec_id;
	life->n_processes++;
	return life;
}

void runtime_process_saw(struct runtime_processes *m, const struct runtime_process_key *key)
{
	struct runtime_life *life = life_find(m, key);

	if (life && life->newest < key->exec_id)
		life->newest = key->exec_id;
}

bool runtime_process_is_past(const struct runtime_process *p)
{
	return p->key.exec_id < p->life->newest;
}

/* ---------------------------------------------------------------- processes */

struct runtime_process_key runtime_process_key_of(const struct address_space_who *who)
{
	return (struct runtime_process_key){who->pid.pid, who->start_ns, who->exec_id};
}

struct runtime_process *runtime_process_find(const struct runtime_processes *m,
					     const struct runtime_process_key *key)
{
	struct runtime_process *p;

	HASH_FIND(hh, m->items, key, sizeof(*key), p);
	return p;
}

struct runtime_process *runtime_process_new(struct runtime_processes *m,
					    const struct address_space_who *who, uint64_t owner)
{
	struct share_holder *h =
		hold(&m->owners, owner, RUNTIME_PROCESSES_MAX, HASH_COUNT(m->items));
	struct runtime_process *p = h ? calloc(1, sizeof(*p)) : NULL;
	bool hash_oom = false;

	m->n_refused += !h;
	if (!p) {
		release(&m->owners, h);
		return NULL;
	}
	p->key = runtime_process_key_of(who);
	p->life = life_get(m, &p->key);
	p->pid = who->pid;
	p->outcome = m->kind->unreadable;
	p->owner = h;
	TAILQ_INIT(&p->wanted);
	if (p->life)
		HASH_ADD(hh, m->items, key, sizeof(p->key), p);
	if (!p->life || hash_oom) {
		life_put(m, p->life);
		release(&m->owners, h);
		free(p);
		return NULL;
	}
	return p;
}

void runtime_process_queue(struct runtime_processes *m, struct runtime_process *p)
{
	if (!p->is_queued)
		TAILQ_INSERT_TAIL(&m->unread, p, in_unread);
	p->is_queued = true;
}

void runtime_process_unqueue(struct runtime_processes *m, struct runtime_process *p)
{
	if (p->is_queued)
		TAILQ_REMOVE(&m->unread, p, in_unread);
	p->is_queued = false;
}

void runtime_process_set_copied(struct runtime_processes *m, struct runtime_process *p, bool is)
{
	if (is == p->is_copied)
		return;
	if (is)
		TAILQ_INSERT_TAIL(&m->copied, p, in_copied);
	else
		TAILQ_REMOVE(&m->copied, p, in_copied);
	m->n_copied += is ? 1 : -1ull;
	p->is_copied = is;
}

void runtime_processes_make_room(struct runtime_processes *m)
{
	while (m->n_copied >= RUNTIME_COPIED_MAX)
		runtime_process_drop(m, TAILQ_FIRST(&m->copied));
}

bool runtime_process_has_record(const struct runtime_process *p)
{
	return p->walked;
}

void runtime_process_take_record(struct runtime_processes *m, struct runtime_process *p)
{
	p->walked = hold(&m->walkers, p->owner->id, m->kind->records, m->n_records);
	p->is_full = !p->walked;
	m->n_records += runtime_process_has_record(p);
}

void runtime_process_drop_record(struct runtime_processes *m, struct runtime_process *p)
{
	m->n_records -= runtime_process_has_record(p);
	release(&m->walkers, p->walked);
	p->walked = NULL;
	p->is_full = false;
}

bool runtime_process_take_quick(struct runtime_processes *m, struct runtime_process *p)
{
	p->quick = hold(&m->quick, p->owner->id, RUNTIME_QUICK_MAX, m->n_quick);
	m->n_quick += p->quick != NULL;
	return p->quick;
}

void runtime_process_put_quick(struct runtime_processes *m, struct runtime_process *p)
{
	m->n_quick -= p->quick != NULL;
	release(&m->quick, p->quick);
	p->quick = NULL;
}

/* ---------------------------------------------------------------- functions */

void runtime_value_free(const struct runtime_reader_kind *kind, void *value)
{
	if (value)
		kind->function_deinit(value);
	free(value);
}

static size_t bytes_of(const struct runtime_processes *m, const struct runtime_function *f)
{
	return sizeof(*f) +
	       (f->value ? m->kind->function_bytes + m->kind->function_size(f->value) : 0);
}

/* False without memory; not for a function that is counted already. */
static bool count(struct runtime_processes *m, const struct runtime_process *p,
		  const struct runtime_function *f)
{
	const size_t n = bytes_of(m, f);

	if (!runtime_budget_take(m->budget, p->owner->id, n))
		return false;
	m->name_bytes += n;
	return true;
}

static void uncount(struct runtime_processes *m, const struct runtime_process *p,
		    const struct runtime_function *f)
{
	const size_t n = bytes_of(m, f);

	runtime_budget_give(m->budget, p->owner->id, n);
	m->name_bytes -= n;
}

/* The function no longer waits. */
static void settle(struct runtime_process *p, struct runtime_function *f)
{
	if (!f->is_wanted)
		return;
	TAILQ_REMOVE(&p->wanted, f, in_wanted);
	p->n_wanted--;
	f->is_wanted = false;
}

static void function_drop(struct runtime_processes *m, struct runtime_process *p,
			  struct runtime_function *f)
{
	HASH_DEL(p->functions, f);
	uncount(m, p, f);
	settle(p, f);
	runtime_value_free(m->kind, f->value);
	free(f);
}

/* False: the function has one entry for all places. */
static bool any_place_of(const struct runtime_processes *m, const struct runtime_function_key *key,
			 struct runtime_function_key *ret)
{
	return m->kind->any_place && m->kind->any_place(key->words, ret->words);
}

static struct runtime_function_key key_of(const struct runtime_processes *m,
					  const struct frame_record *frame)
{
	struct runtime_function_key key = {{frame->words[0], frame->words[1]}}, any;

	if (!any_place_of(m, &key, &any))
		key.words[1] &= ~(uint64_t)UINT32_MAX;
	return key;
}

struct runtime_function *runtime_function_find_key(const struct runtime_process *p,
						   const struct runtime_function_key *key)
{
	struct runtime_function *f;

	HASH_FIND(hh, p->functions, key, sizeof(*key), f);
	return f;
}

struct runtime_function *runtime_function_find(const struct runtime_processes *m,
					       const struct runtime_process *p,
					       const struct frame_record *frame)
{
	const struct runtime_function_key key = key_of(m, frame);

	return runtime_function_find_key(p, &key);
}

struct runtime_function *runtime_function_elsewhere(const struct runtime_processes *m,
						    const struct runtime_process *p,
						    const struct frame_record *frame)
{
	struct runtime_function_key key = key_of(m, frame), any;
	struct runtime_function *f;

	f = any_place_of(m, &key, &any) ? runtime_function_find_key(p, &any) : NULL;
	if (!f)
		return NULL;
	f->n_idle = 0;
	key.words[1] = f->read_place;
	return runtime_function_find_key(p, &key);
}

static struct runtime_function *function_add(struct runtime_processes *m, struct runtime_process *p,
					     const struct runtime_function_key *key)
{
	struct runtime_function *f = calloc(1, sizeof(*f));
	bool hash_oom = false;

	if (!f)
		return NULL;
	f->key = *key;
	if (count(m, p, f)) {
		HASH_ADD(hh, p->functions, key, sizeof(f->key), f);
		if (hash_oom)
			uncount(m, p, f);
	} else {
		hash_oom = true;
	}
	if (hash_oom) {
		free(f);
		return NULL;
	}
	return f;
}

static void want(struct runtime_processes *m, struct runtime_process *p, struct runtime_function *f)
{
	f->is_wanted = true;
	TAILQ_INSERT_TAIL(&p->wanted, f, in_wanted);
	p->n_wanted++;
	runtime_process_queue(m, p);
}

struct runtime_function *runtime_function_new(struct runtime_processes *m,
					      struct runtime_process *p,
					      const struct frame_record *frame)
{
	const struct runtime_function_key key = key_of(m, frame);
	struct runtime_function *f = function_add(m, p, &key);

	if (f)
		want(m, p, f);
	return f;
}

void runtime_function_prove(struct runtime_processes *m, struct runtime_process *p,
			    struct runtime_function *f)
{
	if (!f->is_wanted)
		want(m, p, f);
}

void runtime_function_keep(struct runtime_process *p, struct runtime_function *f)
{
	settle(p, f);
	f->proved_ns = nsec_monotonic();
}

void runtime_function_lose(struct runtime_processes *m, struct runtime_process *p,
			   struct runtime_function *f)
{
	const size_t before = bytes_of(m, f);

	settle(p, f);
	runtime_value_free(m->kind, f->value);
	f->value = NULL;
	f->is_gone = true;
	runtime_budget_give(m->budget, p->owner->id, before - bytes_of(m, f));
	m->name_bytes -= before - bytes_of(m, f);
}

/* Remembers that @f is read, for frames of the same function at other places. Code without lines,
 * such as a stub, has names by place. Without memory these frames have no name. */
static void note_read(struct runtime_processes *m, struct runtime_process *p,
		      const struct runtime_function *f)
{
	struct runtime_place place;
	struct runtime_function_key key;
	struct runtime_function *any;

	if (!any_place_of(m, &f->key, &key))
		return;
	m->kind->place(f->value, (uint32_t)f->key.words[1], &place);
	if (!place.function.start_line)
		return;
	any = runtime_function_find_key(p, &key);
	if (!any)
		any = function_add(m, p, &key);
	if (!any)
		return;
	any->read_place = f->key.words[1];
	any->n_idle = 0;
}

void runtime_function_set(struct runtime_processes *m, struct runtime_process *p,
			  struct runtime_function *f, void *value)
{
	size_t before;

	settle(p, f);
	if (!value && f->value)
		return; /* an excerpt has it */
	f->is_gone = !value;
	if (!value)
		return;
	before = bytes_of(m, f);
	runtime_value_free(m->kind, f->value);
	f->value = value;
	f->proved_ns = nsec_monotonic();
	(void)runtime_budget_take(m->budget, p->owner->id, bytes_of(m, f)); /* has an entry */
	runtime_budget_give(m->budget, p->owner->id, before);
	m->name_bytes += bytes_of(m, f) - before;
	note_read(m, p, f);
}

void runtime_function_use(struct runtime_function *f)
{
	f->n_idle = 0;
}

void runtime_functions_sweep(struct runtime_processes *m, struct runtime_process *p)
{
	struct runtime_function *f, *next;

	HASH_ITER(hh, p->functions, f, next)
		if (f->is_gone)
			function_drop(m, p, f);
		else if (f->n_idle < RUNTIME_FUNCTION_IDLE)
			f->n_idle++;
}

/* Drops the functions of a process that no thread reads. */
static void evict(struct runtime_processes *m, struct runtime_process *p, bool all)
{
	struct runtime_function *f, *next;

	HASH_ITER(hh, p->functions, f, next)
		if (!f->is_wanted && (all || f->n_idle >= RUNTIME_FUNCTION_IDLE)) {
			function_drop(m, p, f);
			m->n_evicted++;
		}
}

static void give(void *ctx, size_t least, bool all)
{
	struct runtime_processes *m = ctx;
	struct runtime_process *p;

	for (p = m->items; p; p = p->hh.next)
		if (p->functions && runtime_budget_of(m->budget, p->owner->id) >= least)
			evict(m, p, all);
}

void runtime_process_drop(struct runtime_processes *m, struct runtime_process *p)
{
	struct runtime_function *f, *next;

	HASH_ITER(hh, p->functions, f, next)
		function_drop(m, p, f);
	runtime_process_unqueue(m, p);
	runtime_process_set_copied(m, p, false);
	runtime_process_drop_record(m, p);
	runtime_process_put_quick(m, p);
	release(&m->owners, p->owner);
	life_put(m, p->life);
	HASH_DEL(m->items, p);
	free(p->target);
	free(p);
}

void runtime_processes_init(struct runtime_processes *m, const struct runtime_reader_kind *kind,
			    struct runtime_budget *budget)
{
	*m = (struct runtime_processes){
		.kind = kind, .budget = budget, .in_budget = {.give = give, .ctx = m}};
	TAILQ_INIT(&m->unread);
	TAILQ_INIT(&m->copied);
	runtime_budget_join(budget, &m->in_budget);
}

void runtime_processes_deinit(struct runtime_processes *m)
{
	struct runtime_process *p, *next;

	HASH_ITER(hh, m->items, p, next)
		runtime_process_drop(m, p);
	if (m->budget)
		runtime_budget_leave(m->budget, &m->in_budget);
}

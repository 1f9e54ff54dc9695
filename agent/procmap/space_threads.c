// SPDX-License-Identifier: Apache-2.0
/*
 * Opening a file can block forever, so the agent's cache does that on a thread (opener.h). A
 * mapping of a file then has an image without file at first (struct image_opening). A sampled pc
 * wants the file. The other files of the process follow in order, up to a ceiling, because
 * stacks pass through them. Each owner (share.h) has a queue of its processes with wanted files;
 * the owner with the least recent time on the thread is served next. The opened image replaces the
 * first one in the mapping, with a new version. Frames that already have the first image are
 * settled where they get their names (frame_settle()).
 *
 * Reading /proc/PID/maps can block as well, and takes 30 ms for 60,000 mappings. So another such
 * thread reads the lists. A read that needs a list requests it and ends with -EINPROGRESS. When the
 * list is there, the same read is made again with it, after all events before the end of the
 * thread's read. Until then address_space_opening() holds back the samples of a process of which
 * nothing is known, or whose mappings are in doubt. The queues are those of the files.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/nsec.h"
#include "base/prioq.h"
#include "base/share.h"
#include "procmap/images.h"
#include "procmap/maps.h"
#include "procmap/opener.h"
#include "procmap/space.h"

/* Files of one process that are opened without a sample in them. A browser has 300 mappings.
 * Reached: a stack that passes through another file ends there, until that file is opened. */
#define ADDRESS_SPACE_AHEAD_MAX 256

static bool may_submit(const struct address_space_cache *c, const struct space_owner *owner,
		       enum space_order order)
{
	if (!owner->id)
		return true;
	if (order == ORDER_LISTS)
		return share_allows(OPENER_LISTS_MAX, opener_pending(c->lister), owner->n_lists);
	return share_allows(OPENER_QUEUE_MAX, opener_pending(c->opener), owner->n_batches);
}

/* The first of @order that may submit. While the thread has room, the others have something with
 * the thread: they are fewer than its lists or batches. */
static struct space_owner *next_owner(struct address_space_cache *c, enum space_order order)
{
	struct space_owner *passed[OPENER_LISTS_MAX], *owner;
	size_t n = 0;

	while ((owner = space_first_owner(c, order)) && !may_submit(c, owner, order)) {
		if (n == array_size(passed)) {
			owner = NULL;
			break;
		}
		prioq_remove(&c->orders[order], &owner->places[order]);
		passed[n++] = owner;
	}
	while (n)
		space_order_owner(c, passed[--n]);
	return owner;
}

static void tell(const struct address_space_cache *c, uint64_t pid)
{
	if (c->files.opened)
		c->files.opened(c->files.ctx, pid);
}

static void refuse_list(struct address_space_cache *c, struct address_space *s, uint64_t until_ns)
{
	space_end_list(c, s);
	s->list_refused_ns = until_ns;
	s->stale = !s->gone;
	if (!s->version)
		s->outcome = MAPS_SLOW;
}

/* The list of the first space in the queue of @owner. False: without memory. */
static bool submit_list(struct address_space_cache *c, struct space_owner *owner)
{
	struct address_space *s = TAILQ_FIRST(&owner->lists);
	struct open_batch *batch;
	uint64_t until_ns;

	if (opener_refuses(c->lister, owner->id, s->list_of.pid, &until_ns)) {
		refuse_list(c, s, until_ns);
		tell(c, s->key.pid.pid);
		return true;
	}
	batch = open_batch_new();
	if (!batch)
		return false;
	batch->way.owner = owner->id;
	memcpy(batch->tag, &s->key, sizeof(s->key));
	batch->list.is_wanted = true;
	batch->list.of = s->list_of;
	batch->list.exec_id = ADDRESS_SPACE_EXEC_ANY; /* a parent's */
	if (pid_id_equal(&s->list_of, &s->key.pid)) {
		batch->list.exec_id = s->key.exec_id;
		batch->list.began_ns = s->began_ns;
	}
	batch->list.maps.only_prot = MAPS_X;
	if (pid_id_equal(&s->list_of, &s->way.pid))
		batch->list.maps.inode = s->way.inode;
	if (opener_submit(c->lister, batch)) {
		open_batch_free(batch);
		return false;
	}
	owner->n_lists++;
	space_unqueue_list(c, s);
	return true;
}

static void submit_lists(struct address_space_cache *c)
{
	struct space_owner *owner;

	while (c->lister && opener_has_room(c->lister) && (owner = next_owner(c, ORDER_LISTS)) &&
	       submit_list(c, owner))
		;
}

static int request_list(struct address_space_cache *c, struct address_space *s,
			const struct pid_id *id)
{
	if (pid_id_equal(&s->list_of, id))
		return -EINPROGRESS;
	space_end_list(c, s);
	if (nsec_monotonic() < s->list_refused_ns)
		return MAPS_SLOW;
	s->list_of = *id;
	s->list_since_ns = c->since_ns;
	c->n_reading++;
	space_enqueue_list(c, s);
	submit_lists(c);
	return space_is_reading(s) ? -EINPROGRESS : MAPS_SLOW;
}

int space_get_list(struct address_space_cache *c, struct address_space *s, const struct pid_id *id,
		   struct maps *ret)
{
	if (pid_id_equal(&c->read_of, id)) {
		*ret = c->read;
		c->read = (struct maps){0};
		c->read_of = (struct pid_id){0};
		return c->read_outcome;
	}
	if (c->lister)
		return request_list(c, s, id);
	ret->only_prot = MAPS_X;
	ret->inode = pid_id_equal(id, &s->way.pid) ? s->way.inode : 0;
	return maps_read(c->proc, id, ret);
}

static void on_list(void *ctx, struct open_batch *batch)
{
	struct address_space_cache *c = ctx;
	struct address_space_key key;
	struct space_owner *owner;
	struct address_space *s;
	uint64_t until_ns = 0;

	memcpy(&key, batch->tag, sizeof(key));
	HASH_FIND(hh, c->owners, &batch->way.owner, sizeof(batch->way.owner), owner);
	if (owner) { /* always: the owner stays as long as it has lists */
		owner->used_ns += batch->took_ns;
		owner->n_lists--;
		space_order_owner(c, owner);
	}
	HASH_FIND(hh, c->spaces, &key, sizeof(key), s);
	if (s && pid_id_equal(&s->list_of, &batch->list.of)) {
		if (c->lister && batch->list.done) {
			c->use_list(c, s, &batch->list);
		} else {
			if (c->lister)
				(void)opener_refuses(c->lister, batch->way.owner,
						     batch->list.of.pid, &until_ns);
			refuse_list(c, s, until_ns);
		}
	}
	open_batch_free(batch);
	if (owner)
		space_put_owner(c, owner);
	submit_lists(c);
	if (c->lister)
		tell(c, key.pid.pid);
}

static void opened_file(struct address_space_cache *c, struct open_request *request)
{
	static const enum address_space_outcome outcomes[IMAGE_KIND_MAX] = {
		[IMAGE_ANON] = ADDRESS_SPACE_ANON,
		[IMAGE_UNKNOWN] = ADDRESS_SPACE_IMAGES_FULL,
	};
	struct image_opening *opening = request->image->opening;
	struct image *opened = take_ptr(request->opened);
	enum address_space_outcome outcome = outcomes[opened->kind];

	if (opened->kind == IMAGE_FILE)
		outcome = opened->file ? ADDRESS_SPACE_FILE : ADDRESS_SPACE_NO_ELF;
	c->outcomes[outcome] += opening->n_pcs;
	opening->n_pcs = 0;
	image_set_opened(request->image, opened);
}

static void slow_file(struct address_space_cache *c, struct image_opening *opening,
		      uint64_t until_ns)
{
	c->outcomes[ADDRESS_SPACE_SLOW] += opening->n_pcs;
	opening->n_pcs = 0;
	opening->state = IMAGE_SLOW;
	opening->until_ns = until_ns;
}

static bool may_go_ahead(const struct address_space *s)
{
	return s->n_unopened && s->n_ahead < ADDRESS_SPACE_AHEAD_MAX;
}

/* Adds the file of @m to a batch, unless the file system or the owner has a cooldown. */
static void add_request(struct address_space_cache *c, struct address_space *s,
			const struct address_space_mapping *m, struct open_batch *batch)
{
	struct image_opening *opening = m->image->opening;
	uint64_t until_ns = 0;

	if (opener_refuses(c->opener, s->owner->id, m->device, &until_ns)) {
		slow_file(c, opening, until_ns);
		return;
	}
	opening->state = IMAGE_ASKED;
	batch->items[batch->n++] = (struct open_request){
		.image = image_ref(m->image),
		.entry = {.start = m->start,
			  .limit = m->limit,
			  .offset = m->offset,
			  .device = m->device,
			  .inode = m->inode,
			  .prot = MAPS_X,
			  .kind = opening->kind,
			  .path = m->image->path,
			  .deleted = opening->deleted},
	};
}

/* The next files of @s: first those with samples. */
static void fill_batch(struct address_space_cache *c, struct address_space *s,
		       struct open_batch *batch)
{
	batch->way = s->way;
	memcpy(batch->tag, &s->key, sizeof(s->key));
	for (size_t i = 0; i < s->n && s->n_wanted && batch->n < OPENER_BATCH_MAX; i++) {
		const struct image_opening *opening = s->items[i].image->opening;

		if (opening && opening->state == IMAGE_WANTED)
			add_request(c, s, &s->items[i], batch);
	}
	for (size_t i = 0; i < s->n && may_go_ahead(s) && batch->n < OPENER_BATCH_MAX; i++) {
		const struct image_opening *opening = s->items[i].image->opening;

		if (!opening || opening->state != IMAGE_UNASKED)
			continue;
		s->n_ahead++;
		add_request(c, s, &s->items[i], batch);
	}
	space_recount(c, s);
}

static void submit_batches(struct address_space_cache *c)
{
	struct space_owner *owner;

	while (c->opener && opener_has_room(c->opener) && (owner = next_owner(c, ORDER_BATCHES))) {
		struct address_space *s = TAILQ_FIRST(&owner->queue);
		struct open_batch *batch = open_batch_new();

		if (!batch)
			return; /* with the next request */
		fill_batch(c, s, batch);
		space_unqueue(c, s);
		if (s->n_wanted || may_go_ahead(s))
			space_enqueue(c, s);
		/* with requests there is room for it */
		if (!batch->n || opener_submit(c->opener, batch))
			open_batch_free(batch);
		else
			owner->n_batches++;
	}
}

/* Files of @s are wanted: its owner's queue has it. */
static void enqueue(struct address_space_cache *c, struct address_space *s)
{
	space_enqueue(c, s);
	submit_batches(c);
}

void space_queue_ahead(struct address_space_cache *c, struct address_space *s)
{
	space_unqueue(c, s);
	if (c->opener && (s->n_wanted || may_go_ahead(s)))
		enqueue(c, s);
}

bool space_want_file(struct address_space_cache *c, struct address_space *s,
		     struct image_opening *opening)
{
	if (opening->state == IMAGE_SLOW && nsec_monotonic() >= opening->until_ns) {
		opening->state = IMAGE_UNASKED;
		s->n_slow--;
		s->n_unopened++;
		s->n_unknown += !opening->guess;
	}
	if (opening->state == IMAGE_UNASKED) {
		opening->state = IMAGE_WANTED;
		s->n_unopened--;
		s->n_wanted++;
		c->n_opening++;
		enqueue(c, s);
	}
	return opening->state == IMAGE_WANTED || opening->state == IMAGE_ASKED;
}

static void on_batch(void *ctx, struct open_batch *batch)
{
	struct address_space_cache *c = ctx;
	uint64_t now_ns = nsec_monotonic();
	struct address_space_key key;
	struct space_owner *owner;
	struct address_space *s;

	memcpy(&key, batch->tag, sizeof(key));
	for (size_t i = 0; i < batch->n; i++) {
		struct open_request *request = &batch->items[i];

		if (request->opened)
			opened_file(c, request);
		else if (request->slow)
			slow_file(c, request->image->opening, now_ns + OPENER_COOLDOWN_NS);
		else
			request->image->opening->state = IMAGE_WANTED;
	}
	HASH_FIND(hh, c->owners, &batch->way.owner, sizeof(batch->way.owner), owner);
	if (owner) { /* always: the owner stays as long as it has batches */
		owner->used_ns += batch->took_ns;
		owner->n_batches--;
		space_order_owner(c, owner);
	}
	HASH_FIND(hh, c->spaces, &key, sizeof(key), s);
	if (s) {
		space_settle(c, s);
		space_queue_ahead(c, s);
	}
	open_batch_free(batch);
	if (owner)
		space_put_owner(c, owner);
	submit_batches(c);
	if (c->opener)
		tell(c, key.pid.pid);
}

int address_space_cache_open_behind(struct address_space_cache *c,
				    const struct address_space_files *files)
{
	struct opener_opts opts = {
		.loop = files->loop,
		.images = c->images,
		.stuck_ns = files->stuck_ns,
		.done = on_batch,
		.ctx = c,
		.hook = files->hook,
		.hook_ctx = files->hook_ctx,
	};

	int r = opener_new(&opts, &c->opener);

	c->files = *files;
	opts.lists = true;
	opts.done = on_list;
	return r ? r : opener_new(&opts, &c->lister);
}

size_t address_space_cache_opening(const struct address_space_cache *c)
{
	return c->n_reading + (c->opener ? c->n_opening : 0);
}

void address_space_cache_wait(struct address_space_cache *c, uint64_t timeout_ns)
{
	if (c->n_reading)
		opener_wait(c->lister, timeout_ns);
	else if (c->opener)
		opener_wait(c->opener, timeout_ns);
}

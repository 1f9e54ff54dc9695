// SPDX-License-Identifier: Apache-2.0
/*
 * A look at a process reads its mappings. The first look comes at once, and another look after each
 * change of the executable. The check for a change is an fstatat() a round, and the only cost of
 * most processes. A library may be loaded at any time, so further looks follow after one round,
 * two, four and so on. If nothing has changed, a look costs only the read of the mappings.
 *
 * An exec keeps pid and start time. An exec of the same program keeps the executable, too. The
 * readers detect this case, because the readers hold the old address space open.
 *
 * The first program of a container from runc is runc itself, written in Go, until the exec of the
 * container's program. The exec comes in moments, or in a container that was only created, at the
 * start. Such a process gets a first look in each round, and counts as no Go program until then.
 *
 * The process's memory is held open while readers are made: if the address space is the same at the
 * end, all findings belong to this address space.
 */
#include "goprofile/process.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/root.h"
#include "base/strview.h"
#include "base/vec.h"
#include "goheap/goheap.h"
#include "goheap/goruntimes.h"
#include "procmap/memory.h"

/* Rounds between two looks at the mappings; see GOIMAGES_KEEP_ROUNDS. Reached: -. */
#define GO_PROCESS_WAIT_MAX    64
/* Files with forced runtimes in a process, executed in sequence. Reached: none is
 * forced any more. */
#define GO_PROCESS_FORCED_MAX  64
/* Bytes of a process's environment searched for runc's variables. runc's own process has only 300
 * bytes and the path of a directory. Reached: taken for a program of the container. */
#define GO_PROCESS_ENVIRON_MAX 8192

void go_process_init(struct go_process *p, const struct pid_id *pid)
{
	*p = (struct go_process){.pid = *pid, .state = GORUNTIME_NO_RUNTIME};
}

static void drop_runtimes(struct go_process *p)
{
	for (size_t i = 0; i < p->n_runtimes; i++)
		goheap_free(p->runtimes[i].heap);
	free(p->runtimes);
	p->runtimes = NULL;
	p->n_runtimes = 0;
	p->mappings = 0;
}

void go_process_deinit(struct go_process *p)
{
	drop_runtimes(p);
	free(p->forced);
}

/* ---------------------------------------------------------------- forced */

static bool go_process_was_forced(const struct go_process *p, const struct file_id *id)
{
	for (size_t i = 0; i < p->n_forced; i++)
		if (file_id_same_inode(&p->forced[i], id))
			return true;
	return false;
}

bool go_process_may_force(const struct go_process *p)
{
	return p->n_forced < GO_PROCESS_FORCED_MAX;
}

int go_process_forced(struct go_process *p, const struct go_process_runtime *runtime)
{
	int r;

	if (go_process_was_forced(p, &runtime->id))
		return 0;
	r = vec_grow(&p->forced, &p->cap_forced, p->n_forced + 1, sizeof(*p->forced),
		     GO_PROCESS_FORCED_MAX);
	if (r)
		return r < 0 ? r : 0;
	p->forced[p->n_forced++] = runtime->id;
	return 0;
}

/* ---------------------------------------------------------------- looking */

static int new_heap(const struct go_process *p, const struct go_process_opts *opts,
		    const struct goruntime *found, struct goheap **ret)
{
	const struct goheap_opts heap = {
		.proc = opts->proc,
		.id = p->pid,
		.runtime = found,
		.was_forced = go_process_was_forced(p, &found->id),
		.max_bytes = opts->max_bytes,
	};

	return goheap_new(&heap, ret);
}

/* The existing reader, moved out of @p; otherwise a new number without a reader. */
static struct go_process_runtime take_known(struct go_process *p, const struct goruntime *found)
{
	struct go_process_runtime known;

	for (size_t i = 0; i < p->n_runtimes; i++) {
		struct go_process_runtime *r = &p->runtimes[i];

		if (!file_id_same_inode(&r->id, &found->id) || r->bias != found->bias)
			continue;
		known = *r;
		r->heap = NULL;
		if (known.heap && goheap_state(known.heap) == GORUNTIME_UNKNOWN_LAYOUT) {
			goheap_free(known.heap); /* the read may have been too early */
			known.heap = NULL;
		}
		return known;
	}
	return (struct go_process_runtime){
		.id = found->id,
		.bias = found->bias,
		.number = ++p->n_numbers,
		.told = GORUNTIME_STATE_MAX,
	};
}

/* Replace the known runtimes. */
static int keep_found(struct go_process *p, const struct go_process_opts *opts,
		      const struct goruntimes *found)
{
	struct go_process_runtime *fresh = calloc(found->n, sizeof(*fresh));
	size_t n = 0;
	int r = 0;

	if (!fresh)
		return -ENOMEM;
	for (; !r && n < found->n; n++) {
		fresh[n] = take_known(p, &found->items[n]);
		if (!fresh[n].heap)
			r = new_heap(p, opts, &found->items[n], &fresh[n].heap);
	}
	drop_runtimes(p);
	p->runtimes = fresh;
	p->n_runtimes = n;
	p->mappings = found->mappings;
	return r;
}

/* Whether another look at the same mappings would find nothing more. */
static bool is_settled(const struct goruntimes *found)
{
	for (size_t i = 0; i < found->n; i++)
		if (found->items[i].state != GORUNTIME_OK || !found->items[i].certain)
			return false;
	return true;
}

/* Replace the known state with the result of a look, possibly empty. */
static int take_found(struct go_process *p, const struct go_process_opts *opts,
		      const struct goruntimes *found, int state)
{
	unsigned int n_numbers = p->n_numbers;
	int r;

	p->state = (enum goruntime_state)state;
	p->is_cut = found->n_left_out > 0;
	if (!found->n) {
		drop_runtimes(p);
		p->mappings = state == GORUNTIME_NO_RUNTIME ? found->mappings : 0;
		return 0;
	}
	p->state = GORUNTIME_OK;
	r = keep_found(p, opts, found);
	if (!is_settled(found))
		p->mappings = 0;
	if (p->n_numbers != n_numbers)
		p->wait = 1; /* more libraries may follow a new one */
	return r;
}

/* Whether the process is runc before the exec. Checked by the environment, present from the
 * first moment; the name "runc:[2:INIT]" comes later (runc's libcontainer/container_linux.go and
 * nsenter/nsexec.c). */
static bool is_setting_up(const struct root *proc, const struct pid_id *pid)
{
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(GO_PROCESS_ENVIRON_MAX);
	struct strview all, variable;
	char path[48];

	snprintf(path, sizeof(path), "%" PRIu64 "/environ", pid->pid);
	if (root_read(proc, path, &b) || !b.data)
		return false;
	all = strview_of_bytes(b.data, b.len);
	while (strview_until(&all, '\0', &variable))
		if (strview_starts(&variable, "_LIBCONTAINER_INITPIPE="))
			return true;
	return false;
}

static int look(struct go_process *p, const struct go_process_opts *opts)
{
	_cleanup_(process_memory_deinit) struct process_memory pm = {.fd = -1};
	_cleanup_(freep) struct goruntimes *found = calloc(1, sizeof(*found));
	int denied = process_memory_init(&pm, opts->proc, &p->pid), r;

	if (!found || denied < 0)
		return found ? denied : -ENOMEM;
	r = goruntimes_find(opts->images, opts->proc, &p->pid, denied ? NULL : &pm.memory,
			    p->mappings, found);
	if (r < 0 || r == GORUNTIMES_UNCHANGED)
		return r < 0 ? r : 0;
	if (found->n && is_setting_up(opts->proc, &p->pid)) {
		drop_runtimes(p);
		p->state = GORUNTIME_NO_RUNTIME;
		p->wait = 0;
		return 0;
	}
	r = take_found(p, opts, found, r);
	if (!r && !denied && memory_check(&pm.memory)) {
		drop_runtimes(p);
		p->wait = 0;
	}
	return r;
}

int go_process_look(struct go_process *p, const struct go_process_opts *opts)
{
	struct file_id exe = pid_read_exe(opts->proc, p->pid.pid);
	bool first = p->wait == 0, other = !file_id_same_inode(&exe, &p->exe);
	int r;

	if (!first && !other && (int)(opts->round - p->next_look) < 0)
		return 0;
	if (other) {
		drop_runtimes(p);
		p->exe = exe;
		p->wait = 0;
	}
	p->wait = p->wait ? p->wait * 2 : 1;
	if (p->wait > GO_PROCESS_WAIT_MAX)
		p->wait = GO_PROCESS_WAIT_MAX;
	r = look(p, opts);
	p->next_look = opts->round + p->wait;
	return r;
}

bool go_process_left(struct go_process *p)
{
	bool left = false;

	for (size_t i = 0; i < p->n_runtimes; i++)
		left |= p->runtimes[i].heap && goheap_state(p->runtimes[i].heap) == GORUNTIME_GONE;
	if (!left)
		return false;
	drop_runtimes(p);
	p->state = GORUNTIME_GONE;
	p->wait = 0;
	return true;
}

void go_process_shed(struct go_process *p, struct go_process_runtime *runtime)
{
	goheap_free(runtime->heap);
	runtime->heap = NULL;
	p->mappings = 0;
	p->wait = 0;
}

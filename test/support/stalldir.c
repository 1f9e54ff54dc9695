// SPDX-License-Identifier: Apache-2.0
#include "support/stalldir.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "support/fusewire.h"
#include "support/test.h"

#define NODES_MAX  4096
#define NAME_BYTES 256
#define HELD_MAX   64
/* The server looks for the end of the stall. */
#define LOOK_MS	   5

/* Shared by the test and the server. */
struct control {
	_Atomic uint32_t stalled; /* an opcode; 0: none */
	_Atomic uint32_t delayed; /* the same */
	_Atomic unsigned int delay_ms;
	_Atomic int error;
	_Atomic unsigned int n_held;
};

struct stalldir {
	struct control *control;
	char *path;
	pid_t pid;
};

/* A node's number is its index. Removed nodes stay, without a parent. */
struct node {
	uint64_t parent;
	char name[NAME_BYTES];
	uint32_t mode;
	char *data;
	size_t size;
};

struct server {
	struct control *control;
	int fuse;
	struct node nodes[NODES_MAX]; /* 0: unused; 1: the root */
	uint64_t n_nodes;
	struct fusewire_request *held[HELD_MAX];
	unsigned int n_held;
};

static const struct {
	const char *name;
	uint32_t opcode;
} operations[] = {
	{"lookup", FUSE_LOOKUP},   {"getattr", FUSE_GETATTR}, {"mkdir", FUSE_MKDIR},
	{"create", FUSE_CREATE},   {"open", FUSE_OPEN},	      {"read", FUSE_READ},
	{"write", FUSE_WRITE},	   {"flush", FUSE_FLUSH},     {"rename", FUSE_RENAME2},
	{"unlink", FUSE_UNLINK},   {"rmdir", FUSE_RMDIR},     {"opendir", FUSE_OPENDIR},
	{"readdir", FUSE_READDIR},
};

/* ---- the server's answers */

static void reply(const struct server *s, const struct fusewire_request *r, int error,
		  const void *body, size_t n)
{
	fusewire_reply(s->fuse, r->header.unique, error, body, n);
}

static struct fuse_attr attr_of(const struct server *s, uint64_t number)
{
	const struct node *node = &s->nodes[number];

	return (struct fuse_attr){
		.ino = number,
		.size = node->size,
		.blocks = (node->size + 511) / 512,
		.mode = node->mode,
		.nlink = S_ISDIR(node->mode) ? 2 : 1,
		.blksize = 4096,
	};
}

static uint64_t find(const struct server *s, uint64_t parent, const char *name)
{
	for (uint64_t i = 2; i <= s->n_nodes; i++)
		if (s->nodes[i].parent == parent && strcmp(s->nodes[i].name, name) == 0)
			return i;
	return 0;
}

static struct fuse_entry_out entry_of(const struct server *s, uint64_t number)
{
	/* timeouts of 0: the kernel asks each time */
	return (struct fuse_entry_out){.nodeid = number, .attr = attr_of(s, number)};
}

/* 0 if there is no room. */
static uint64_t add(struct server *s, uint64_t parent, const char *name, uint32_t mode)
{
	struct node *node;

	if (s->n_nodes + 1 >= NODES_MAX)
		return 0;
	node = &s->nodes[++s->n_nodes];
	node->parent = parent;
	node->mode = mode;
	snprintf(node->name, sizeof(node->name), "%s", name);
	return s->n_nodes;
}

static void answer_lookup(struct server *s, const struct fusewire_request *r)
{
	uint64_t number = find(s, r->header.nodeid, r->body);
	struct fuse_entry_out out = entry_of(s, number);

	reply(s, r, number ? 0 : ENOENT, &out, number ? sizeof(out) : 0);
}

static void answer_mkdir(struct server *s, const struct fusewire_request *r)
{
	const struct fuse_mkdir_in *in = (const void *)r->body;
	const char *name = r->body + sizeof(*in);
	struct fuse_entry_out out;
	uint64_t number;

	if (find(s, r->header.nodeid, name)) {
		reply(s, r, EEXIST, NULL, 0);
		return;
	}
	number = add(s, r->header.nodeid, name, S_IFDIR | (in->mode & 0777));
	out = entry_of(s, number);
	reply(s, r, number ? 0 : ENOSPC, &out, number ? sizeof(out) : 0);
}

static void answer_create(struct server *s, const struct fusewire_request *r)
{
	const struct fuse_create_in *in = (const void *)r->body;
	const char *name = r->body + sizeof(*in);
	struct {
		struct fuse_entry_out entry;
		struct fuse_open_out open;
	} out = {.open = {0}};
	uint64_t number = find(s, r->header.nodeid, name);

	if (!number)
		number = add(s, r->header.nodeid, name, S_IFREG | (in->mode & 0777));
	out.entry = entry_of(s, number);
	reply(s, r, number ? 0 : ENOSPC, &out, number ? sizeof(out) : 0);
}

static void answer_write(struct server *s, const struct fusewire_request *r)
{
	const struct fuse_write_in *in = (const void *)r->body;
	struct node *node = &s->nodes[r->header.nodeid];
	struct fuse_write_out out = {.size = in->size};
	size_t end = (size_t)in->offset + in->size;

	if (end > node->size) {
		node->data = realloc(node->data, end);
		node->size = end;
	}
	memcpy(node->data + in->offset, r->body + sizeof(*in), in->size);
	reply(s, r, 0, &out, sizeof(out));
}

static void answer_read(struct server *s, const struct fusewire_request *r)
{
	const struct fuse_read_in *in = (const void *)r->body;
	const struct node *node = &s->nodes[r->header.nodeid];
	size_t n = in->offset < node->size ? node->size - in->offset : 0;

	reply(s, r, 0, n ? node->data + in->offset : NULL, n < in->size ? n : in->size);
}

/* One entry an answer: the kernel asks until the answer is empty. */
static void answer_readdir(struct server *s, const struct fusewire_request *r)
{
	const struct fuse_read_in *in = (const void *)r->body;
	uint64_t number = in->offset < 2 ? 2 : in->offset + 1;
	char room[sizeof(struct fuse_dirent) + NAME_BYTES + 8] = {0};
	struct fuse_dirent *entry = (void *)room;

	while (number <= s->n_nodes && s->nodes[number].parent != r->header.nodeid)
		number++;
	if (number > s->n_nodes) {
		reply(s, r, 0, NULL, 0);
		return;
	}
	entry->ino = number;
	entry->off = number;
	entry->namelen = (uint32_t)strlen(s->nodes[number].name);
	entry->type = (s->nodes[number].mode & S_IFMT) >> 12;
	memcpy(entry->name, s->nodes[number].name, entry->namelen);
	reply(s, r, 0, room, FUSE_DIRENT_SIZE(entry));
}

static void answer_rename(struct server *s, const struct fusewire_request *r)
{
	const struct fuse_rename2_in *in = (const void *)r->body;
	const char *from = r->body + sizeof(*in), *to = from + strlen(from) + 1;
	uint64_t number = find(s, r->header.nodeid, from), old = find(s, in->newdir, to);

	if (!number) {
		reply(s, r, ENOENT, NULL, 0);
		return;
	}
	s->nodes[old].parent = 0;
	s->nodes[number].parent = in->newdir;
	snprintf(s->nodes[number].name, NAME_BYTES, "%s", to);
	reply(s, r, 0, NULL, 0);
}

/* Without flags the kernel asks in the older form. */
static void answer_rename_old(struct server *s, const struct fusewire_request *r)
{
	const struct fuse_rename_in *in = (const void *)r->body;
	struct fusewire_request *same = calloc(1, sizeof(*same));
	struct fuse_rename2_in new_in = {.newdir = in->newdir};

	same->header = r->header;
	memcpy(same->body, &new_in, sizeof(new_in));
	memcpy(same->body + sizeof(new_in), r->body + sizeof(*in),
	       r->header.len - sizeof(r->header) - sizeof(*in));
	answer_rename(s, same);
	free(same);
}

static void answer_remove(struct server *s, const struct fusewire_request *r)
{
	uint64_t number = find(s, r->header.nodeid, r->body);
	int error = number ? 0 : ENOENT;

	for (uint64_t i = 2; number && i <= s->n_nodes; i++)
		if (s->nodes[i].parent == number)
			error = ENOTEMPTY;
	if (!error)
		s->nodes[number].parent = 0;
	reply(s, r, error, NULL, 0);
}

static void answer(struct server *s, const struct fusewire_request *r)
{
	struct fuse_attr_out attr = {.attr = attr_of(s, r->header.nodeid % NODES_MAX)};
	struct fuse_statfs_out statfs = {.st = {.bsize = 4096, .namelen = 255}};
	struct fuse_open_out open_out = {.open_flags = FOPEN_DIRECT_IO};

	switch (r->header.opcode) {
	case FUSE_INIT:
		fusewire_init(s->fuse, r);
		return;
	case FUSE_LOOKUP:
		answer_lookup(s, r);
		return;
	case FUSE_GETATTR:
	case FUSE_SETATTR:
		reply(s, r, 0, &attr, sizeof(attr));
		return;
	case FUSE_MKDIR:
		answer_mkdir(s, r);
		return;
	case FUSE_CREATE:
		answer_create(s, r);
		return;
	case FUSE_OPEN:
		reply(s, r, 0, &open_out, sizeof(open_out));
		return;
	case FUSE_OPENDIR:
		open_out.open_flags = 0;
		reply(s, r, 0, &open_out, sizeof(open_out));
		return;
	case FUSE_READ:
		answer_read(s, r);
		return;
	case FUSE_WRITE:
		answer_write(s, r);
		return;
	case FUSE_READDIR:
		answer_readdir(s, r);
		return;
	case FUSE_RENAME:
		answer_rename_old(s, r);
		return;
	case FUSE_RENAME2:
		answer_rename(s, r);
		return;
	case FUSE_UNLINK:
	case FUSE_RMDIR:
		answer_remove(s, r);
		return;
	case FUSE_STATFS:
		reply(s, r, 0, &statfs, sizeof(statfs));
		return;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_FSYNC:
		reply(s, r, 0, NULL, 0);
		return;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		return; /* have no answers */
	default:
		reply(s, r, ENOSYS, NULL, 0);
	}
}

/* ---- stalls */

static bool is_stalled(const struct server *s, const struct fusewire_request *r)
{
	uint32_t stalled = atomic_load(&s->control->stalled), opcode = r->header.opcode;

	if (opcode == FUSE_RENAME)
		opcode = FUSE_RENAME2;
	return stalled && opcode == stalled && s->n_held < HELD_MAX;
}

static void serve_held(struct server *s)
{
	int error = atomic_load(&s->control->error);

	for (unsigned int i = 0; i < s->n_held; i++) {
		if (error)
			reply(s, s->held[i], error, NULL, 0);
		else
			answer(s, s->held[i]);
		free(s->held[i]);
	}
	s->n_held = 0;
	atomic_store(&s->control->n_held, 0);
}

static void serve_one(struct server *s)
{
	struct fusewire_request *r = calloc(1, sizeof(*r));
	ssize_t n = read(s->fuse, r, sizeof(*r));

	if (n < 0 && errno == ENODEV)
		_exit(0); /* unmounted */
	if (n >= (ssize_t)sizeof(r->header) && is_stalled(s, r)) {
		s->held[s->n_held++] = r;
		atomic_store(&s->control->n_held, s->n_held);
		return;
	}
	if (n >= (ssize_t)sizeof(r->header)) {
		if (r->header.opcode == atomic_load(&s->control->delayed))
			usleep(atomic_load(&s->control->delay_ms) * 1000);
		answer(s, r);
	}
	free(r);
}

__attribute__((noreturn)) static void serve(struct control *control, int fuse)
{
	struct server *s = calloc(1, sizeof(*s));

	*s = (struct server){.control = control, .fuse = fuse, .n_nodes = 1};
	s->nodes[1].mode = S_IFDIR | 0755;
	for (;;) {
		struct pollfd fd = {fuse, POLLIN, 0};

		if (poll(&fd, 1, LOOK_MS) > 0)
			serve_one(s);
		if (s->n_held && !atomic_load(&control->stalled))
			serve_held(s);
	}
}

/* ---- the test's side */

struct stalldir *stalldir_new(const char *path)
{
	struct stalldir *d = calloc(1, sizeof(*d));
	int fuse;

	d->path = strdup(path);
	d->control = mmap(NULL, sizeof(*d->control), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(d->control, MAP_FAILED);
	assert_int_equal(unshare(CLONE_NEWNS), 0);
	assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	fuse = fusewire_mount("stalldir", path);
	assert_true(fuse >= 0);
	d->pid = fork();
	assert_true(d->pid >= 0);
	if (!d->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(d->control, fuse);
	}
	close(fuse);
	return d;
}

void stalldir_free(struct stalldir *d)
{
	assert_int_equal(umount(d->path), 0);
	assert_int_equal(waitpid(d->pid, NULL, 0), d->pid);
	munmap(d->control, sizeof(*d->control));
	free(d->path);
	free(d);
}

static uint32_t opcode_of(const char *operation)
{
	for (size_t i = 0; i < array_size(operations); i++)
		if (strcmp(operations[i].name, operation) == 0)
			return operations[i].opcode;
	fail_msg("no such operation: %s", operation);
	return 0;
}

void stalldir_stall(struct stalldir *d, const char *operation)
{
	atomic_store(&d->control->error, 0);
	atomic_store(&d->control->stalled, opcode_of(operation));
}

void stalldir_delay(struct stalldir *d, const char *operation, unsigned int ms)
{
	atomic_store(&d->control->delay_ms, ms);
	atomic_store(&d->control->delayed, opcode_of(operation));
}

void stalldir_answer(struct stalldir *d, int error)
{
	atomic_store(&d->control->error, error);
	atomic_store(&d->control->stalled, 0);
}

unsigned int stalldir_n_held(const struct stalldir *d)
{
	return atomic_load(&d->control->n_held);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * A container on a file system whose server stops answering:
 *
 *	stallfs DIRECTORY FILE OPERATION
 *
 * mounts DIRECTORY, in a mount namespace of its own, with a copy of FILE as "program", and starts
 * "program wait" (attack.c). Once the program is ready, OPERATION gets no answer: open, getattr,
 * read, flush, release, or lookup: then the file system is the program's root. All other requests
 * are answered. Then the program runs, and this one prints "ready", and "held" at the first stalled
 * request. A line on standard input, or its end, answers the stalled requests and ends all. The end
 * of this process, in any way, ends the program, the mount and all requests.
 *
 * The program's time of change is the time of the mount: the kernel gives the number of an
 * unmounted file system to the next one, and a reader takes files with equal number, inode and time
 * for one.
 *
 * Nothing but the page cache's content is cached, and reads are direct where OPERATION is "read":
 * so each of a reader's system calls asks this server.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "support/fusewire.h"

#define ROOT	 1
#define PROGRAM	 2
#define HELD_MAX 256

/* A stalled request: enough data for a later answer. */
struct held {
	struct fuse_in_header header;
	struct fuse_read_in read;
};

static int fuse;
static unsigned char *content;
static size_t n_content;
static uint32_t stalled; /* an opcode; 0: none */
static bool direct;
static struct timespec mounted;
static struct held held[HELD_MAX];
static size_t n_held;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void tell(const char *what)
{
	puts(what);
	fflush(stdout);
}

static void reply(uint64_t unique, int error, const void *body, size_t n)
{
	fusewire_reply(fuse, unique, error, body, n);
}

static struct fuse_attr attr_of(uint64_t node)
{
	const bool is_root = node == ROOT;

	return (struct fuse_attr){
		.ino = node,
		.size = is_root ? 0 : n_content,
		.blocks = is_root ? 0 : (n_content + 511) / 512,
		.mode = is_root ? S_IFDIR | 0755 : S_IFREG | 0755,
		.nlink = 1,
		.blksize = 4096,
		.ctime = (uint64_t)mounted.tv_sec,
		.ctimensec = (uint32_t)mounted.tv_nsec,
	};
}

static void answer_read(uint64_t unique, const struct fuse_read_in *in)
{
	size_t n = in->offset < n_content ? n_content - in->offset : 0;

	reply(unique, 0, content + in->offset, n < in->size ? n : in->size);
}

static void answer_lookup(const struct fusewire_request *r)
{
	struct fuse_entry_out out = {.nodeid = PROGRAM, .attr = attr_of(PROGRAM)};

	if (strcmp(r->body, "program") == 0)
		reply(r->header.unique, 0, &out, sizeof(out));
	else
		reply(r->header.unique, ENOENT, NULL, 0);
}

static void answer(const struct fuse_in_header *h, const struct fusewire_request *r,
		   const struct fuse_read_in *read_in)
{
	/* An open that does not keep the cache takes the code from the program that runs. */
	struct fuse_open_out open_out = {.open_flags =
						 FOPEN_KEEP_CACHE | (direct ? FOPEN_DIRECT_IO : 0)};
	struct fuse_attr_out attr_out = {.attr = attr_of(h->nodeid)};
	struct fuse_statfs_out statfs_out = {.st = {.bsize = 4096, .namelen = 255}};

	switch (h->opcode) {
	case FUSE_INIT:
		fusewire_init(fuse, r);
		return;
	case FUSE_LOOKUP:
		answer_lookup(r);
		return;
	case FUSE_GETATTR:
		reply(h->unique, 0, &attr_out, sizeof(attr_out));
		return;
	case FUSE_OPEN:
		reply(h->unique, 0, &open_out, sizeof(open_out));
		return;
	case FUSE_READ:
		answer_read(h->unique, read_in);
		return;
	case FUSE_STATFS:
		reply(h->unique, 0, &statfs_out, sizeof(statfs_out));
		return;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_ACCESS:
		reply(h->unique, 0, NULL, 0);
		return;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		return; /* have no answers */
	default:
		reply(h->unique, ENOSYS, NULL, 0);
	}
}

static void on_request(void)
{
	static struct fusewire_request r;
	ssize_t n = read(fuse, &r, sizeof(r));

	if (n < (ssize_t)sizeof(r.header)) {
		if (n < 0 && errno == ENODEV)
			exit(0); /* unmounted */
		return;
	}
	if (stalled && r.header.opcode == stalled && n_held < HELD_MAX) {
		if (!n_held)
			tell("held");
		held[n_held].header = r.header;
		memcpy(&held[n_held++].read, r.body, sizeof(held->read));
		return;
	}
	answer(&r.header, &r, (const void *)r.body);
}

static uint32_t opcode_of(const char *name)
{
	if (strcmp(name, "open") == 0)
		return FUSE_OPEN;
	if (strcmp(name, "getattr") == 0)
		return FUSE_GETATTR;
	if (strcmp(name, "read") == 0)
		return FUSE_READ;
	if (strcmp(name, "flush") == 0)
		return FUSE_FLUSH;
	if (strcmp(name, "release") == 0)
		return FUSE_RELEASE;
	if (strcmp(name, "lookup") == 0)
		return FUSE_LOOKUP;
	fprintf(stderr, "stallfs: open, getattr, read, flush, release or lookup, not %s\n", name);
	exit(2);
}

static void load(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		die(path);
	n_content = (size_t)st.st_size;
	content = malloc(n_content);
	if (!content || read(fd, content, n_content) != (ssize_t)n_content)
		die(path);
	close(fd);
}

static void do_mount(const char *directory)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		die("mount namespace");
	clock_gettime(CLOCK_REALTIME, &mounted);
	fuse = fusewire_mount("stallfs", directory);
	if (fuse < 0)
		die(directory);
}

/* Starts the program; its standard input and output are @ret_in and @ret_out. It can only start
 * while requests are answered. */
static void start(const char *directory, bool is_root, int *ret_in, int *ret_out)
{
	int in[2], out[2];
	char path[4096];

	snprintf(path, sizeof(path), "%s/program", directory);
	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		die("pipe");
	switch (fork()) {
	case -1:
		die("fork");
		break;
	case 0:
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		if (is_root && (chroot(directory) < 0 || chdir("/") < 0))
			_exit(1);
		execl(is_root ? "/program" : path, path, "wait", (char *)NULL);
		_exit(1);
	}
	close(in[0]);
	close(out[1]);
	*ret_in = in[1];
	*ret_out = out[0];
}

int main(int argc, char **argv)
{
	uint32_t operation;
	int in, out;

	if (argc != 4) {
		fprintf(stderr, "usage: stallfs DIRECTORY FILE OPERATION\n");
		return 2;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	operation = opcode_of(argv[3]);
	direct = operation == FUSE_READ;
	load(argv[2]);
	do_mount(argv[1]);
	start(argv[1], operation == FUSE_LOOKUP, &in, &out);
	for (;;) {
		struct pollfd fds[] = {
			{fuse, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}, {out, POLLIN, 0}};
		char line[64];

		if (poll(fds, stalled ? 2 : 3, -1) < 0)
			die("poll");
		if (fds[0].revents)
			on_request();
		if (fds[1].revents)
			break;
		if (stalled || !fds[2].revents)
			continue;
		if (read(out, line, sizeof(line)) <= 0)
			return 1; /* the program has ended */
		stalled = operation;
		if (write(in, "\n", 1) != 1)
			return 1;
		tell("ready");
	}
	for (size_t i = 0; i < n_held; i++) {
		if (held[i].header.opcode == FUSE_LOOKUP)
			reply(held[i].header.unique, ENOENT, NULL, 0);
		else
			answer(&held[i].header, NULL, &held[i].read);
	}
	return 0;
}

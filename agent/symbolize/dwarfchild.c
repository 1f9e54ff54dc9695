// SPDX-License-Identifier: Apache-2.0
/*
 * libdw keeps what it has read until the file is closed. So above half of the memory the other
 * files are closed, and above three quarters the file is closed and opened again. Above all of the
 * memory the process ends.
 */
#include "symbolize/dwarfchild.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/nsec.h"
#include "base/sandbox.h"
#include "symbolize/dwarfcode.h"
#include "symbolize/dwarflines.h"
#include "symbolize/dwarfreader.h"
#include "symbolize/dwarfwire.h"
#include "symbolize/symbolizer.h"

/* Files kept open. Reached: the least used is closed. */
#define DWARFCHILD_FILES_MAX	 4
/* Addresses of a request (LOOKUP_BATCH). Reached: - */
#define DWARFCHILD_ADDRESSES_MAX 4096
/* CPU time, so that a request never meets the limit of a process that has worked for long. */
#define RETIRE_NS		 (DWARFCHILD_CPU_MAX_S * NSEC_PER_SEC / 2)
/* Time for a request, a quarter of the deadline: a debug file of gigabytes on a slow disk takes
 * longer. Reached: the other addresses are for the next request. */
#define REQUEST_NS		 (DWARFREADER_DEADLINE_NS / 4)
/* Parts of units read between two looks at the memory in use: mallinfo2() goes through all free
 * memory. */
#define LOOK			 16

struct file {
	uint64_t number; /* 0: none */
	uint64_t used;
	int fds[DWARFWIRE_FILES_MAX];
	size_t n_fds;
	struct dwarflines_split splits[DWARFWIRE_SPLITS_MAX];
	size_t n_splits;
	struct dwarfcode *code; /* NULL: @lines has the file, or it is not open */
	struct dwarflines *lines;
};

struct child {
	struct file files[DWARFCHILD_FILES_MAX];
	uint64_t tick;
	struct arena memory; /* of an answer's strings */
	struct intern_texts strings;
	uint32_t n_strings;
	struct buf string_bytes;
	struct buf line_bytes;
	struct dwarfwire_request request;
	uint64_t vaddrs[DWARFCHILD_ADDRESSES_MAX];
};

static _Noreturn void leave(enum dwarfchild_exit status)
{
	_exit((int)status);
}

/* ---------------------------------------------------------------- the socket */

static void read_all(void *to, size_t n)
{
	for (size_t done = 0; done < n;) {
		ssize_t got = read(DWARFCHILD_FD, (char *)to + done, n - done);

		if (got <= 0 && !(got < 0 && errno == EINTR))
			leave(DWARFCHILD_DONE);
		done += got > 0 ? (size_t)got : 0;
	}
}

static void write_all(const void *from, size_t n)
{
	for (size_t done = 0; done < n;) {
		ssize_t put =
			send(DWARFCHILD_FD, (const char *)from + done, n - done, MSG_NOSIGNAL);

		if (put <= 0 && !(put < 0 && errno == EINTR))
			leave(DWARFCHILD_DONE);
		done += put > 0 ? (size_t)put : 0;
	}
}

/* Whether a request comes in time. After the shutdown podprof cannot send one any more; a request
 * that was sent just before is answered. */
static bool wait_for_request(void)
{
	struct pollfd ready = {.fd = DWARFCHILD_FD, .events = POLLIN};
	char byte;

	if (poll(&ready, 1, DWARFCHILD_IDLE_MS) > 0)
		return true;
	shutdown(DWARFCHILD_FD, SHUT_RD);
	return recv(DWARFCHILD_FD, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* The request without the addresses, and the descriptors. */
static void receive(struct child *c, int fds[DWARFWIRE_DESCRIPTORS], size_t *ret_n)
{
	struct iovec iov = {.iov_base = &c->request, .iov_len = sizeof(c->request)};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int) * DWARFWIRE_DESCRIPTORS)];
	} control;
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	const struct cmsghdr *header;

	if (!wait_for_request() ||
	    recvmsg(DWARFCHILD_FD, &message, MSG_WAITALL) != sizeof(c->request))
		leave(DWARFCHILD_DONE);
	header = CMSG_FIRSTHDR(&message);
	*ret_n = header ? (header->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
	if (c->request.n_files > DWARFWIRE_FILES_MAX ||
	    c->request.n_splits > DWARFWIRE_SPLITS_MAX ||
	    *ret_n != c->request.n_files + c->request.n_splits ||
	    c->request.n_addresses > DWARFCHILD_ADDRESSES_MAX)
		leave(DWARFCHILD_DONE);
	if (header)
		memcpy(fds, CMSG_DATA(header), *ret_n * sizeof(int));
	read_all(c->vaddrs, c->request.n_addresses * sizeof(c->vaddrs[0]));
}

/* ---------------------------------------------------------------- files */

static void close_lines(struct file *f)
{
	dwarfcode_free(f->code);
	dwarflines_free(f->lines);
	f->code = NULL;
	f->lines = NULL;
}

static void close_file(struct file *f)
{
	close_lines(f);
	for (size_t i = 0; i < f->n_fds; i++)
		close(f->fds[i]);
	for (size_t i = 0; i < f->n_splits; i++)
		close(f->splits[i].fd);
	*f = (struct file){.number = 0};
}

/* Takes @fds. Each request has all files; the new ones are kept. */
static void take_splits(struct file *f, const struct dwarfwire_request *request, const int *fds)
{
	for (size_t i = 0; i < request->n_splits; i++) {
		bool is_known = f->n_splits == DWARFWIRE_SPLITS_MAX;

		for (size_t k = 0; k < f->n_splits && !is_known; k++)
			is_known = f->splits[k].unit == request->units[i];
		if (is_known)
			close(fds[i]);
		else
			f->splits[f->n_splits++] =
				(struct dwarflines_split){request->units[i], fds[i]};
	}
}

/* Takes @fds. */
static struct file *take_file(struct child *c, const int *fds)
{
	const size_t n_fds = c->request.n_files;
	struct file *f = &c->files[0];

	for (size_t i = 0; i < DWARFCHILD_FILES_MAX; i++) {
		if (c->files[i].number == c->request.file) {
			f = &c->files[i];
			break;
		}
		if (c->files[i].used < f->used)
			f = &c->files[i];
	}
	if (f->number != c->request.file) {
		close_file(f);
		f->number = c->request.file;
		memcpy(f->fds, fds, n_fds * sizeof(*fds));
		f->n_fds = n_fds;
	} else {
		for (size_t i = 0; i < n_fds; i++)
			close(fds[i]);
	}
	take_splits(f, &c->request, fds + n_fds);
	f->used = ++c->tick;
	return f;
}

static _Noreturn void no_memory(void)
{
	leave(DWARFCHILD_NO_MEMORY);
}

/* The file that libdw is to open, by whatever name; -1: none. For the signal handler. */
static volatile int lent = -1;

static void lend(int fd)
{
	lent = fd;
}

/* libdw closes what it has opened. */
static int open_lent(void)
{
	return lent < 0 ? -EPERM : (int)syscall(SYS_dup, lent);
}

static int open_lines(struct file *f)
{
	int r;

	if (f->code || f->lines)
		return 0;
	r = dwarfcode_open(f->fds, f->n_fds, &f->code);
	if (r == -ENOMEM)
		no_memory();
	if (!r)
		return 0;
	r = dwarflines_open(f->fds, f->n_fds, no_memory, &f->lines);
	if (r == -ENOMEM)
		no_memory();
	if (!r)
		dwarflines_set_splits(f->lines, f->splits, f->n_splits, lend);
	return r;
}

static uint64_t memory_in_use(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* Closes other files first. */
static void make_room(struct child *c, struct file *f)
{
	if (memory_in_use() < DWARFCHILD_DATA_MAX / 2)
		return;
	for (size_t i = 0; i < DWARFCHILD_FILES_MAX; i++)
		if (&c->files[i] != f)
			close_file(&c->files[i]);
	if (memory_in_use() > DWARFCHILD_DATA_MAX / 4 * 3) {
		close_lines(f);
	}
	malloc_trim(0);
}

static size_t reads_of(const struct file *f)
{
	return f->code ? dwarfcode_reads(f->code) : f->lines ? dwarflines_reads(f->lines) : 0;
}

/* Before the first address of a request, and when much was read since the last look. */
static void watch_memory(struct child *c, struct file *f, size_t i, size_t *reads)
{
	if (i && reads_of(f) - *reads < LOOK)
		return;
	make_room(c, f);
	*reads = reads_of(f);
}

/* ---------------------------------------------------------------- the answer */

static void must(int r)
{
	if (r)
		leave(DWARFCHILD_NO_MEMORY);
}

static void begin_answer(struct child *c)
{
	intern_texts_deinit(&c->strings);
	arena_deinit(&c->memory);
	arena_init(&c->memory, DWARFCHILD_DATA_MAX);
	buf_reset(&c->string_bytes);
	buf_reset(&c->line_bytes);
	c->n_strings = 0;
}

/* The number of a string. */
static uint32_t string_id(struct child *c, const char *text)
{
	const struct interned *string;
	size_t n = strlen(text);
	uint16_t length;

	if (n > DWARFWIRE_STRING_MAX)
		n = 0;
	must(intern_text(&c->strings, &c->memory, text, n, &string));
	if (string->number == c->n_strings) { /* a new one */
		c->n_strings++;
		length = (uint16_t)n;
		must(buf_append(&c->string_bytes, &length, sizeof(length)));
		must(buf_append(&c->string_bytes, string->key, n));
	}
	return string->number;
}

static void add_lines(struct child *c, const struct symbol_line *lines, uint8_t n)
{
	must(buf_append(&c->line_bytes, &n, sizeof(n)));
	for (size_t i = 0; i < n; i++) {
		const char *function = lines[i].function;
		struct dwarfwire_line line = {
			.file = string_id(c, lines[i].file),
			.line = lines[i].line,
			.column = lines[i].column,
			.start_line = lines[i].start_line,
		};

		line.function = string_id(c, function);
		if (!line.function && lines[i].inlined)
			line.function = string_id(c, "[inlined]");
		must(buf_append(&c->line_bytes, &line, sizeof(line)));
	}
}

/* Files of split DWARF for the next request. */
static void add_wanted(struct child *c, const struct dwarflines *lines)
{
	uint64_t id;
	uint32_t unit;
	char path[PATH_MAX];

	for (size_t i = 0; dwarflines_wanted(lines, i, &unit, &id, path); i++) {
		const uint16_t n = path[0] == '/' ? (uint16_t)strlen(path) : 0;

		must(buf_append(&c->line_bytes, &unit, sizeof(unit)));
		must(buf_append(&c->line_bytes, &id, sizeof(id)));
		must(buf_append(&c->line_bytes, &n, sizeof(n)));
		must(buf_append(&c->line_bytes, path, n));
	}
}

/* The last @n addresses of the request. */
static void leave_out(struct child *c, size_t n)
{
	const uint8_t left = DWARFWIRE_LEFT;

	for (size_t i = 0; i < n; i++)
		must(buf_append(&c->line_bytes, &left, sizeof(left)));
}

static enum dwarfwire_status find_all(struct child *c, struct file *f)
{
	struct symbol_line lines[SYMBOL_LINES_MAX];
	enum dwarfwire_status status = DWARFWIRE_OK;
	const uint64_t begin_ns = nsec_monotonic();
	size_t reads = 0;

	begin_answer(c);
	string_id(c, "");
	if (f->lines) /* wanted files add up over all addresses of a request */
		dwarflines_set_splits(f->lines, f->splits, f->n_splits, lend);
	if (f->code)
		dwarfcode_renew(f->code);
	for (size_t i = 0; i < c->request.n_addresses && status == DWARFWIRE_OK; i++) {
		bool is_full = c->string_bytes.len + c->line_bytes.len > DWARFWIRE_ANSWER_MAX / 2;
		int n = 0;

		if (i && nsec_monotonic() - begin_ns > REQUEST_NS) {
			leave_out(c, c->request.n_addresses - i);
			break;
		}
		watch_memory(c, f, i, &reads);
		if (open_lines(f))
			status = DWARFWIRE_NO_DWARF;
		else if (!is_full)
			n = f->code ? dwarfcode_find(f->code, c->vaddrs[i], lines)
				    : dwarflines_find(f->lines, c->vaddrs[i], lines);
		if (n < 0)
			leave(DWARFCHILD_NO_MEMORY);
		add_lines(c, lines, (uint8_t)n);
	}
	if (status == DWARFWIRE_OK && f->lines)
		add_wanted(c, f->lines);
	return status;
}

static void answer(struct child *c, struct file *f)
{
	enum dwarfwire_status status = find_all(c, f);
	struct dwarfwire_answer header = {.id = c->request.id, .status = status};

	header.retires = nsec_read(CLOCK_PROCESS_CPUTIME_ID) > RETIRE_NS;
	if (status == DWARFWIRE_OK)
		header.n_bytes =
			(uint32_t)(sizeof(c->n_strings) + c->string_bytes.len + c->line_bytes.len);
	write_all(&header, sizeof(header));
	if (status != DWARFWIRE_OK)
		return;
	write_all(&c->n_strings, sizeof(c->n_strings));
	write_all(c->string_bytes.data, c->string_bytes.len);
	write_all(c->line_bytes.data, c->line_bytes.len);
}

int dwarfchild_main(int argc, char **argv)
{
	const struct sandbox_opts opts = {
		.data_bytes = DWARFCHILD_DATA_MAX,
		.address_bytes = DWARFCHILD_ADDRESS_MAX,
		.cpu_s = DWARFCHILD_CPU_MAX_S,
		.open = open_lent,
	};
	struct child *c = calloc(1, sizeof(*c));
	int fds[DWARFWIRE_DESCRIPTORS];
	size_t n_fds;

	(void)argc, (void)argv;
	if (!c)
		leave(DWARFCHILD_NO_MEMORY);
	(void)prctl(PR_SET_NAME, "podprof-dwarf"); /* instead of "exe", of /proc/self/exe */
	if (sandbox_enter(&opts))
		leave(DWARFCHILD_NO_SANDBOX);
	buf_init(&c->string_bytes, DWARFWIRE_ANSWER_MAX);
	buf_init(&c->line_bytes, DWARFWIRE_ANSWER_MAX);
	for (;;) {
		receive(c, fds, &n_fds);
		answer(c, take_file(c, fds));
	}
}

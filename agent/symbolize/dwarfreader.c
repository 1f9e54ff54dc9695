// SPDX-License-Identifier: Apache-2.0
/*
 * The process is executed, not forked: the process has none of podprof's memory, and the libraries
 * lie at other addresses. podprof passes a socket and nothing else, no environment either.
 */
#include "symbolize/dwarfreader.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/launcher.h"
#include "base/nsec.h"
#include "base/work_budget.h"
#include "symbolize/dwarfchild.h"

/* From SIGKILL, or the end of the socket, to the end of the process. */
#define END_NS	 (100 * NSEC_PER_MSEC)
/* From a failed start of a process to the next. */
#define RETRY_NS (60 * NSEC_PER_SEC)

const char *const dwarfreader_outcome_names[DWARFREADER_OUTCOME_MAX] = {
	[DWARFREADER_OK] = "ok",
	[DWARFREADER_UNREADABLE] = "unreadable",
	[DWARFREADER_CRASHED] = "crashed",
	[DWARFREADER_MEMORY] = "memory",
	[DWARFREADER_TIMEOUT] = "timeout",
	[DWARFREADER_MALFORMED] = "malformed",
	[DWARFREADER_NO_PROCESS] = "no_process",
};

/**
 * struct dwarfreader_request - a request, and the answer piece by piece
 * @end_ns:  monotonic: the deadline
 * @header:  of the answer
 * @n_read:  bytes of @header and @bytes together
 * @n:       addresses at @vaddrs
 */
struct dwarfreader_request {
	atomic_int refs;
	bool ended;
	enum dwarfreader_outcome outcome;
	struct file_id file;
	uint64_t end_ns;
	struct dwarfwire_answer header;
	char *bytes;
	size_t n_read;
	uint32_t id;
	size_t n;
	uint64_t vaddrs[];
};

/**
 * struct dying - a killed process
 * @pid:    0: a free place
 * @device: of the file that the process was asked for
 */
struct dying {
	pid_t pid;
	uint64_t device;
};

struct dwarfreader {
	atomic_int refs;
	struct dwarfreader_opts opts;
	char *program;
	struct launcher *launcher;
	pthread_mutex_t lock; /* of all below */
	pid_t pid;	      /* 0: no process */
	int socket;
	struct dwarfreader_request *running; /* a reference */
	uint64_t device;		     /* of the last request */
	struct dying dying[DWARFREADER_DYING_MAX];
	uint64_t patience_ns; /* left of @given_ns */
	uint64_t given_ns;
	uint64_t retry_ns; /* monotonic: no process is started before */
	uint64_t last_number;
	uint32_t last_id;
	struct work_refused refused;
	uint64_t counts[DWARFREADER_OUTCOME_MAX];
};

/* ---------------------------------------------------------------- requests */

static struct dwarfreader_request *request_ref(struct dwarfreader_request *request)
{
	atomic_fetch_add(&request->refs, 1);
	return request;
}

void dwarfreader_request_unref(struct dwarfreader_request *request)
{
	if (!request || atomic_fetch_sub(&request->refs, 1) != 1)
		return;
	free(request->bytes);
	free(request);
}

/* The running process. */
static void end_request(struct dwarfreader *r, enum dwarfreader_outcome outcome)
{
	struct dwarfreader_request *request = take_ptr(r->running);

	if (!request)
		return;
	r->counts[outcome]++;
	request->outcome = outcome;
	request->ended = true;
	if (outcome == DWARFREADER_NO_PROCESS)
		r->retry_ns = nsec_monotonic() + RETRY_NS;
	else if (outcome != DWARFREADER_OK)
		work_refused_add(&r->refused, &request->file, nsec_monotonic());
	dwarfreader_request_unref(request);
}

/* ---------------------------------------------------------------- the process */

static void reap(struct dwarfreader *r)
{
	for (size_t i = 0; i < DWARFREADER_DYING_MAX; i++)
		if (r->dying[i].pid && waitpid(r->dying[i].pid, NULL, WNOHANG) != 0)
			r->dying[i].pid = 0;
}

/* A free place for a process that may not end. */
static struct dying *dying_place(struct dwarfreader *r)
{
	reap(r);
	for (size_t i = 0; i < DWARFREADER_DYING_MAX; i++)
		if (!r->dying[i].pid)
			return &r->dying[i];
	return NULL;
}

/* Whether the file system keeps too many processes from their end. */
static bool is_blocking(struct dwarfreader *r, uint64_t device)
{
	size_t n = 0;

	reap(r);
	for (size_t i = 0; i < DWARFREADER_DYING_MAX; i++)
		n += r->dying[i].pid && r->dying[i].device == device;
	return n >= DWARFREADER_DYING_DEVICE_MAX;
}

/* Whether @pid ends soon; then *@ret_status is how. */
static bool wait_for_end(pid_t pid, int *ret_status)
{
	_cleanup_(close_fdp) int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd ended = {.fd = fd, .events = POLLIN};

	if (fd >= 0)
		(void)poll(&ended, 1, (int)(END_NS / NSEC_PER_MSEC));
	return waitpid(pid, ret_status, WNOHANG) == pid;
}

static enum dwarfreader_outcome outcome_of_end(int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == DWARFCHILD_NO_MEMORY)
		return DWARFREADER_MEMORY;
	if (WIFEXITED(status) && WEXITSTATUS(status) != DWARFCHILD_DONE)
		return DWARFREADER_NO_PROCESS;
	return DWARFREADER_CRASHED;
}

static void forget_process(struct dwarfreader *r)
{
	close(r->socket);
	r->pid = 0;
}

/* Ends the process, and the running request: with @outcome, or by the way the process ended. A
 * process that is ending by itself keeps its exit status. */
static void end_process(struct dwarfreader *r, const enum dwarfreader_outcome *outcome)
{
	int status = 0;

	if (!r->pid)
		return;
	kill(r->pid, SIGKILL);
	if (!wait_for_end(r->pid, &status))
		/* start_process() found a place */
		*dying_place(r) = (struct dying){r->pid, r->device};
	forget_process(r);
	end_request(r, outcome ? *outcome : outcome_of_end(status));
}

static int start_process(struct dwarfreader *r)
{
	char name[] = "podprof", command[] = DWARFCHILD_COMMAND;
	char *const argv[] = {name, command, NULL};
	int sockets[2], err;

	if (nsec_monotonic() < r->retry_ns || !dying_place(r))
		return -EAGAIN;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) < 0)
		return -errno;
	err = launcher_start(r->launcher, r->program, argv, sockets[1], &r->pid);
	close(sockets[1]);
	if (err) {
		close(sockets[0]);
		r->pid = 0;
		return err;
	}
	r->socket = sockets[0];
	return 0;
}

/* ---------------------------------------------------------------- the exchange */

/* All at once: the socket is empty, and a request is much smaller than its buffer. */
static bool send_request(struct dwarfreader *r, const struct dwarfreader_file *file,
			 const struct dwarfreader_request *request)
{
	struct dwarfwire_request header = {
		.file = file->number,
		.id = request->id,
		.n_addresses = (uint32_t)request->n,
		.n_files = (uint32_t)file->n_fds,
		.n_splits = (uint32_t)file->n_splits,
	};
	const size_t n_fds = file->n_fds + file->n_splits;
	const size_t n_addresses = request->n * sizeof(request->vaddrs[0]);
	struct iovec iov[] = {{&header, sizeof(header)}, {(void *)request->vaddrs, n_addresses}};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int) * DWARFWIRE_DESCRIPTORS)];
	} control = {.bytes = {0}};
	struct msghdr message = {
		.msg_iov = iov,
		.msg_iovlen = array_size(iov),
		.msg_control = &control,
		.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds),
	};

	memcpy(header.units, file->units, file->n_splits * sizeof(file->units[0]));
	control.header = (struct cmsghdr){
		.cmsg_len = CMSG_LEN(sizeof(int) * n_fds),
		.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
	};
	memcpy(CMSG_DATA(&control.header), file->fds, sizeof(int) * file->n_fds);
	memcpy(CMSG_DATA(&control.header) + sizeof(int) * file->n_fds, file->split_fds,
	       sizeof(int) * file->n_splits);
	return sendmsg(r->socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) ==
	       (ssize_t)(sizeof(header) + n_addresses);
}

/* The answer is whole, or cannot become one. */
static void check_answer(struct dwarfreader *r)
{
	const enum dwarfreader_outcome malformed = DWARFREADER_MALFORMED;
	struct dwarfreader_request *request = r->running;
	const struct dwarfwire_answer *header = &request->header;
	bool retires;

	if (request->n_read < sizeof(*header))
		return;
	if (header->id != request->id || header->status >= DWARFWIRE_STATUS_MAX ||
	    header->n_bytes > DWARFWIRE_ANSWER_MAX) {
		end_process(r, &malformed);
		return;
	}
	if (request->n_read < sizeof(*header) + header->n_bytes)
		return;
	retires = header->retires;
	end_request(r, header->status == DWARFWIRE_OK ? DWARFREADER_OK : DWARFREADER_UNREADABLE);
	if (retires)
		end_process(r, NULL);
}

/* Reads what is there. */
static void receive(struct dwarfreader *r)
{
	struct dwarfreader_request *request = r->running;
	const size_t n_header = sizeof(request->header);
	char *to = (char *)&request->header + request->n_read;
	size_t want = n_header - request->n_read;
	ssize_t n;

	if (request->n_read >= n_header) {
		if (!request->bytes)
			request->bytes = malloc(request->header.n_bytes);
		to = request->bytes + (request->n_read - n_header);
		want = n_header + request->header.n_bytes - request->n_read;
		if (!request->bytes) {
			end_process(r, &(enum dwarfreader_outcome){DWARFREADER_NO_PROCESS});
			return;
		}
	}
	n = recv(r->socket, to, want, MSG_DONTWAIT);
	if (n > 0) {
		request->n_read += (size_t)n;
		check_answer(r);
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		end_process(r, NULL);
	}
}

/* At most @ns, and until the deadline. */
static void wait_once(struct dwarfreader *r, uint64_t ns)
{
	struct pollfd ready = {.fd = r->socket, .events = POLLIN};
	uint64_t now = nsec_monotonic();
	uint64_t left = r->running->end_ns > now ? r->running->end_ns - now : 0;

	ns = left < ns ? left : ns;
	if (poll(&ready, 1, (int)((ns + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC)) > 0)
		receive(r);
	if (r->running && nsec_monotonic() >= r->running->end_ns)
		end_process(r, &(enum dwarfreader_outcome){DWARFREADER_TIMEOUT});
}

/* Until @request has ended, or the patience. */
static void wait_for(struct dwarfreader *r, const struct dwarfreader_request *request)
{
	while (r->running == request && request && r->patience_ns) {
		uint64_t begin = nsec_monotonic(), waited;

		wait_once(r, r->patience_ns);
		waited = nsec_monotonic() - begin;
		if (r->opts.patience_ns)
			r->patience_ns -= waited < r->patience_ns ? waited : r->patience_ns;
	}
}

static struct dwarfreader_request *new_request(const struct dwarfreader_file *file,
					       const uint64_t *vaddrs, size_t n)
{
	struct dwarfreader_request *request =
		calloc(1, sizeof(*request) + n * sizeof(*request->vaddrs));

	if (!request)
		return NULL;
	atomic_init(&request->refs, 1);
	request->file = file->id;
	request->n = n;
	memcpy(request->vaddrs, vaddrs, n * sizeof(*vaddrs));
	return request;
}

/* Sends the request to a process that lives. A process may have ended since the last answer. */
static void run(struct dwarfreader *r, const struct dwarfreader_file *file,
		struct dwarfreader_request *request)
{
	request->id = ++r->last_id;
	r->device = file->id.device;
	request->end_ns = nsec_monotonic() + r->opts.deadline_ns;
	for (int tries = 0; tries < 2; tries++) {
		if (!r->pid && start_process(r))
			break;
		if (send_request(r, file, request)) {
			r->running = request_ref(request);
			return;
		}
		end_process(r, NULL);
	}
	r->running = request_ref(request);
	end_request(r, DWARFREADER_NO_PROCESS);
}

int dwarfreader_ask(struct dwarfreader *r, struct dwarfreader_file *file, const uint64_t *vaddrs,
		    size_t n, struct dwarfreader_request **ret)
{
	struct dwarfreader_request *request = NULL;
	int err = 0;

	pthread_mutex_lock(&r->lock);
	wait_for(r, r->running);
	if (!r->running && r->patience_ns &&
	    !work_refused_has(&r->refused, &file->id, nsec_monotonic()) &&
	    !is_blocking(r, file->id.device)) {
		request = new_request(file, vaddrs, n);
		err = request ? 0 : -ENOMEM;
	}
	if (request) {
		if (!file->number)
			file->number = ++r->last_number;
		run(r, file, request);
	}
	pthread_mutex_unlock(&r->lock);
	if (!err)
		*ret = request;
	return err;
}

bool dwarfreader_wait(struct dwarfreader *r, struct dwarfreader_request *request)
{
	bool ended;

	pthread_mutex_lock(&r->lock);
	wait_for(r, request);
	ended = request->ended;
	pthread_mutex_unlock(&r->lock);
	return ended;
}

enum dwarfreader_outcome dwarfreader_answer(const struct dwarfreader_request *request,
					    const uint64_t **ret_vaddrs, size_t *ret_n,
					    const void **ret_bytes, size_t *ret_n_bytes)
{
	*ret_vaddrs = request->vaddrs;
	*ret_n = request->n;
	*ret_bytes = request->bytes;
	*ret_n_bytes = request->header.n_bytes;
	return request->outcome;
}

void dwarfreader_reject(struct dwarfreader *r, const struct dwarfreader_request *request)
{
	pthread_mutex_lock(&r->lock);
	r->counts[DWARFREADER_MALFORMED]++;
	work_refused_add(&r->refused, &request->file, nsec_monotonic());
	if (!r->running)
		end_process(r, NULL);
	pthread_mutex_unlock(&r->lock);
}

/* ---------------------------------------------------------------- the reader */

int dwarfreader_new(const struct dwarfreader_opts *opts, struct dwarfreader **ret)
{
	struct dwarfreader *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	r->opts = *opts;
	r->program = strdup(opts->program ? opts->program : "/proc/self/exe");
	err = r->program ? launcher_new(&r->launcher) : -ENOMEM;
	if (err) {
		free(r->program);
		free(r);
		return err;
	}
	if (!r->opts.deadline_ns)
		r->opts.deadline_ns = DWARFREADER_DEADLINE_NS;
	r->patience_ns = opts->patience_ns ? opts->patience_ns : UINT64_MAX;
	r->given_ns = r->patience_ns;
	atomic_init(&r->refs, 1);
	pthread_mutex_init(&r->lock, NULL);
	*ret = r;
	return 0;
}

struct dwarfreader *dwarfreader_ref(struct dwarfreader *r)
{
	if (r)
		atomic_fetch_add(&r->refs, 1);
	return r;
}

void dwarfreader_unref(struct dwarfreader *r)
{
	if (!r || atomic_fetch_sub(&r->refs, 1) != 1)
		return;
	end_process(r, NULL);
	reap(r);
	pthread_mutex_destroy(&r->lock);
	launcher_free(r->launcher);
	free(r->program);
	free(r);
}

uint64_t dwarfreader_waited(struct dwarfreader *r)
{
	uint64_t waited_ns;

	pthread_mutex_lock(&r->lock);
	waited_ns = r->given_ns - r->patience_ns;
	pthread_mutex_unlock(&r->lock);
	return waited_ns;
}

void dwarfreader_renew(struct dwarfreader *r, uint64_t patience_ns)
{
	pthread_mutex_lock(&r->lock);
	reap(r);
	if (r->opts.patience_ns)
		r->given_ns = r->patience_ns = patience_ns;
	if (r->running)
		wait_once(r, 0);
	else if (r->pid && waitpid(r->pid, NULL, WNOHANG) == r->pid)
		forget_process(r);
	pthread_mutex_unlock(&r->lock);
}

void dwarfreader_counts(struct dwarfreader *r, uint64_t *ret)
{
	pthread_mutex_lock(&r->lock);
	memcpy(ret, r->counts, sizeof(r->counts));
	pthread_mutex_unlock(&r->lock);
}

bool dwarfreader_refuses(struct dwarfreader *r, const struct file_id *id)
{
	bool refused;

	pthread_mutex_lock(&r->lock);
	refused = work_refused_has(&r->refused, id, nsec_monotonic());
	pthread_mutex_unlock(&r->lock);
	return refused;
}

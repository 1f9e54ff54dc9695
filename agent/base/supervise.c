// SPDX-License-Identifier: Apache-2.0
/*
 * A thread inside an unanswered request of a FUSE or network file system cannot be killed
 * (request_wait_answer() in fs/fuse/dev.c), and a process is there until its last thread is gone.
 * Nothing inside of a process changes that. So the started process only waits: for signals and for
 * the child that does the work. It opens no foreign file, so it can always end.
 *
 * The child reports the return of its work through a pipe, because neither its end nor the end of
 * the pipe follows while a thread is blocked: the threads share all descriptors. For the same
 * reason the child closes its files before it leaves such a thread behind. A crash makes no report;
 * then the end of the main thread tells, where the kernel has PIDFD_THREAD (Linux 6.9).
 *
 * In a container the parent may be process 1, so it reaps orphans.
 */
#include "base/supervise.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/close_files.h"
#include "base/nsec.h"
#include "base/thread.h"

/* A process without blocked threads takes milliseconds from the report to the end. */
#define LEAVE_NS     (2 * NSEC_PER_SEC)
/* Part of LEAVE_NS: a file system is taken for silent after that time. */
#define CLOSE_NS     (50 * NSEC_PER_MSEC)
/* A joined thread may still be in /proc for a moment. */
#define JOIN_NS	     (100 * NSEC_PER_MSEC)
/* From SIGKILL to the end of a process whose threads can be killed. */
#define KILL_NS	     NSEC_PER_SEC
/* The same while a thread of the process lacks only a CPU. Together with the agent's grace period
 * this is less than the 30 s that Kubernetes gives a pod. */
#define STARVED_NS   (4 * NSEC_PER_SEC)
#define NAME_MAX_LEN 64

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif

enum watched { WATCHED_SIGNALS, WATCHED_REPORT, WATCHED_MAIN, WATCHED_MAX };

struct supervisor {
	const struct supervise_opts *opts;
	pid_t child;
	sigset_t mask; /* of the caller */
	struct pollfd watched[WATCHED_MAX];
	uint64_t end_ns;  /* monotonic: when patience ends; 0: never */
	uint64_t kill_ns; /* monotonic: of SIGKILL */
	bool stopping;
	bool killed;
	bool gone;
	int wait_status; /* once gone */
	int status;	 /* as reported, or 1 */
	char threads[SUPERVISE_TEXT_MAX];
};

static void limit(struct supervisor *s, uint64_t ns)
{
	uint64_t end_ns = nsec_monotonic() + ns;

	if (!s->end_ns || end_ns < s->end_ns)
		s->end_ns = end_ns;
}

/* ---------------------------------------------------------------- what is stuck */

/* The first line of a thread's file; empty without one. */
static void read_word(pid_t pid, pid_t tid, const char *file, char ret[NAME_MAX_LEN])
{
	thread_read_file(pid, tid, file, ret, NAME_MAX_LEN);
	ret[strcspn(ret, "\n")] = '\0';
}

/* A main thread that has ended has no place: it waits for the others. True if a thread is runnable.
 */
static bool describe_threads(struct supervisor *s)
{
	char path[NAME_MAX_LEN], name[NAME_MAX_LEN], place[NAME_MAX_LEN];
	const struct dirent *entry;
	bool any_runnable = false;
	size_t n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)s->child);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		const pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (!tid) /* "." and ".." */
			continue;
		any_runnable |= thread_is_runnable(s->child, tid);
		read_word(s->child, tid, "comm", name);
		read_word(s->child, tid, "wchan", place);
		if (place[0] && strcmp(place, "0") != 0 && n < sizeof(s->threads))
			n += (size_t)snprintf(s->threads + n, sizeof(s->threads) - n, "%s%s in %s",
					      n ? ", " : "", name, place);
	}
	if (dir)
		closedir(dir);
	return any_runnable;
}

/* ---------------------------------------------------------------- parent */

static void on_stop(struct supervisor *s)
{
	if (s->stopping)
		kill(s->child, SUPERVISE_AT_ONCE);
	else if (s->opts->grace_ns)
		limit(s, s->opts->grace_ns);
	s->stopping = true;
}

static void on_child(struct supervisor *s)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != s->child)
			continue;
		s->gone = true;
		s->wait_status = status;
	}
}

static void on_signals(struct supervisor *s)
{
	struct signalfd_siginfo info;

	while (read(s->watched[WATCHED_SIGNALS].fd, &info, sizeof(info)) == sizeof(info)) {
		const int signo = (int)info.ssi_signo;

		if (signo == SIGCHLD) {
			on_child(s);
			continue;
		}
		kill(s->child, signo);
		if (signo != SIGHUP)
			on_stop(s);
	}
}

/* The report, or the end of the main thread: each comes once. */
static void on_end(struct supervisor *s, enum watched by)
{
	unsigned char status;

	if (by == WATCHED_REPORT && read(s->watched[by].fd, &status, 1) == 1)
		s->status = status;
	s->watched[by].fd = -s->watched[by].fd - 1; /* poll() skips it */
	limit(s, s->opts->leave_ns ? s->opts->leave_ns : LEAVE_NS);
}

/* Time is up. False: it was up before, and no thread of the child lacks only a CPU. */
static bool kill_child(struct supervisor *s)
{
	const uint64_t now_ns = nsec_monotonic();
	const uint64_t starved_ns = s->opts->starved_ns ? s->opts->starved_ns : STARVED_NS;
	const bool is_starved = describe_threads(s);

	if (s->killed && (!is_starved || now_ns >= s->kill_ns + starved_ns))
		return false;
	if (s->killed && s->opts->starved)
		s->opts->starved(s->opts->ctx);
	if (!s->killed) {
		kill(s->child, SIGKILL);
		s->kill_ns = now_ns;
	}
	s->killed = true;
	s->end_ns = now_ns + KILL_NS;
	return true;
}

static int patience_ms(const struct supervisor *s)
{
	uint64_t now = nsec_monotonic();

	if (!s->end_ns)
		return -1;
	return s->end_ns <= now ? 0 : (int)((s->end_ns - now) / NSEC_PER_MSEC) + 1;
}

static void watch(struct supervisor *s)
{
	while (!s->gone) {
		if (poll(s->watched, WATCHED_MAX, patience_ms(s)) == 0 && !kill_child(s))
			return;
		on_signals(s);
		for (unsigned int i = WATCHED_REPORT; i < WATCHED_MAX; i++)
			if (s->watched[i].fd >= 0 && s->watched[i].revents)
				on_end(s, i);
	}
}

/* Ends as the child did, without another core. Process 1 of a namespace survives the signal. */
static int die_of(int signo)
{
	sigset_t set;

	prctl(PR_SET_DUMPABLE, 0);
	signal(signo, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, signo);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(signo);
	return 128 + signo;
}

static int outcome(struct supervisor *s)
{
	if (s->killed) {
		s->opts->forced(s->opts->ctx, s->gone ? SUPERVISE_KILLED : SUPERVISE_STUCK,
				s->threads);
		return s->status;
	}
	if (WIFSIGNALED(s->wait_status))
		return die_of(WTERMSIG(s->wait_status));
	return WEXITSTATUS(s->wait_status);
}

/* ---------------------------------------------------------------- child */

/* Threads besides this one. */
static bool has_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	size_t n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n > 3; /* with "." and ".." */
}

static bool leaves_threads(void)
{
	const struct timespec pause = {.tv_nsec = NSEC_PER_MSEC};
	uint64_t end_ns = nsec_monotonic() + JOIN_NS;

	while (has_threads()) {
		if (nsec_monotonic() > end_ns)
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

static _Noreturn void child_main(const struct supervisor *s, pid_t parent, int report)
{
	unsigned char status;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* ended before the call */
		_exit(1);
	close(s->watched[WATCHED_SIGNALS].fd);
	close(s->watched[WATCHED_REPORT].fd);
	sigprocmask(SIG_SETMASK, &s->mask, NULL);
	status = (unsigned char)s->opts->run(s->opts->ctx);
	(void)!write(report, &status, 1);
	if (!leaves_threads())
		exit(status);
	fflush(NULL);
	close_files(CLOSE_NS);
	_exit(status);
}

/* ---------------------------------------------------------------- both */

static int block_signals(struct supervisor *s)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, &s->mask);
	signal(SIGCHLD, SIG_DFL); /* if inherited as ignored, no end of a child would be told */
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int supervise(const struct supervise_opts *opts, int *ret_status)
{
	const pid_t parent = getpid();
	struct supervisor s = {.opts = opts, .status = 1};
	int report[2];

	if (pipe2(report, O_CLOEXEC) < 0)
		return -errno;
	s.watched[WATCHED_SIGNALS] = (struct pollfd){block_signals(&s), POLLIN, 0};
	s.watched[WATCHED_REPORT] = (struct pollfd){report[0], POLLIN, 0};
	fflush(NULL); /* else both would write it */
	s.child = s.watched[WATCHED_SIGNALS].fd < 0 ? -1 : fork();
	if (s.child == 0)
		child_main(&s, parent, report[1]);
	if (s.child < 0)
		return -errno;
	close(report[1]);
	s.watched[WATCHED_MAIN] =
		(struct pollfd){(int)syscall(SYS_pidfd_open, s.child, PIDFD_THREAD), POLLIN, 0};
	watch(&s);
	*ret_status = outcome(&s);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * One thread closes the files in order. A thread without progress has met a silent file system:
 * another one continues with the next file, and leaves out those of the devices of the threads
 * before. The descriptor of a blocked close() is free already.
 */
#include "base/close_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/nsec.h"

#define PAUSE_NS NSEC_PER_MSEC
/* A thread that only waited for a CPU has continued by the next pass: then its device is not left
 * out. */
#define PASSES	 3

/* Never freed: blocked threads have it until the end. */
struct closing {
	int n; /* above the highest descriptor */
	_Atomic int next;
	size_t n_threads;
	_Atomic uint64_t devices[CLOSE_FILES_BLOCKED_MAX]; /* of each thread's file */
};

struct closer {
	struct closing *all;
	size_t slot;
};

/* Without a question to the file system. 0 if unknown. */
static uint64_t device_of(int fd)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &st) < 0)
		return 0;
	return makedev(st.stx_dev_major, st.stx_dev_minor);
}

static bool is_silent(const struct closer *c, uint64_t device)
{
	for (size_t i = 0; i < c->slot; i++)
		if (atomic_load(&c->all->devices[i]) == device)
			return true;
	return false;
}

static void *closer_main(void *arg)
{
	struct closer *c = arg;
	struct closing *all = c->all;
	int fd;

	while ((fd = atomic_fetch_add(&all->next, 1)) < all->n) {
		uint64_t device = device_of(fd);

		if (device && is_silent(c, device))
			continue;
		atomic_store(&all->devices[c->slot], device);
		close(fd);
	}
	atomic_store(&all->devices[c->slot], 0);
	return NULL;
}

static bool start_closer(struct closing *all)
{
	struct closer *c = calloc(1, sizeof(*c));
	pthread_t id;

	if (!c || all->n_threads == CLOSE_FILES_BLOCKED_MAX)
		goto failed;
	*c = (struct closer){all, all->n_threads};
	if (pthread_create(&id, NULL, closer_main, c))
		goto failed;
	all->n_threads++;
	pthread_setname_np(id, "close");
	pthread_detach(id);
	return true;
failed:
	free(c);
	return false;
}

static int highest(void)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;
	int fd, most = -1;

	while (dir && (entry = readdir(dir))) {
		fd = (int)strtol(entry->d_name, NULL, 10);
		if (fd > most)
			most = fd;
	}
	if (dir)
		closedir(dir);
	return most;
}

/* False without another thread. */
static bool pass(struct closing *all, uint64_t stuck_ns)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	uint64_t since_ns = nsec_monotonic();
	int seen = 0, next;

	atomic_store(&all->next, 0);
	if (!start_closer(all))
		return false;
	/* above n: a thread has found no more */
	while ((next = atomic_load(&all->next)) <= all->n) {
		nanosleep(&pause, NULL);
		if (next != seen) {
			seen = next;
			since_ns = nsec_monotonic();
		} else if (nsec_monotonic() - since_ns > stuck_ns) {
			if (!start_closer(all))
				return false;
			since_ns = nsec_monotonic();
		}
	}
	return true;
}

void close_files(uint64_t stuck_ns)
{
	struct closing *all = calloc(1, sizeof(*all));

	if (!all)
		return;
	all->n = highest() + 1;
	for (int i = 0; i < PASSES && pass(all, stuck_ns); i++)
		;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Saves the memory read from a process by the readers of a Go runtime, in the format of
 * support/heapsaved.h: seeds for fuzz_heapimage.
 *
 *	heapsave PID FILE
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/root.h"
#include "goheap/goheap.h"
#include "goheap/goroutines.h"
#include "support/heapsaved.h"

#define SAVED_BYTES (16u << 20)

static int on_goroutine(void *ctx, const struct goroutine *g)
{
	(void)ctx;
	(void)g;
	return 0;
}

static void read_all(const struct goruntime *rt, struct memory *m, struct goheap *h)
{
	struct contention_profile contention;
	struct goroutines_stats stats;
	struct goheap_profile profile;
	struct goheap_gauges gauges;
	struct gototals totals;

	for (int i = 0; i < 2; i++)
		printf("records: %s\n", goruntime_state_name(goheap_read(h, &profile)));
	printf("counters: %d %d\n", goheap_exact(h, &totals), goheap_gauges(h, &gauges));
	for (int i = GO_PROFILE_MUTEX; i <= GO_PROFILE_BLOCK; i++)
		printf("contention: %s\n", goruntime_state_name(goheap_contention(
						   h, (enum go_profile_kind)i, &contention)));
	printf("goroutines: %s\n",
	       goruntime_state_name(goroutines_read(rt, m, on_goroutine, NULL, &stats)));
}

static int save(struct goheap *live, struct buf *ret)
{
	const struct goruntime *rt = goheap_runtime(live);
	struct heaprecorder recorder;
	struct goheap *h;
	int r;

	if (!rt || !goheap_memory(live))
		return -1;
	heaprecorder_init(&recorder, goheap_memory(live));
	r = goheap_new_of_memory(rt, &recorder.memory, 0, &h);
	if (!r) {
		read_all(rt, &recorder.memory, h);
		r = heaprecorder_save(&recorder, rt, ret);
		goheap_free(h);
	}
	heaprecorder_deinit(&recorder);
	return r;
}

int main(int argc, char **argv)
{
	_cleanup_(buf_deinit) struct buf out = BUF_INIT(SAVED_BYTES);
	_cleanup_(root_deinit) struct root proc = ROOT_INIT;
	struct goheap_opts opts = {.proc = &proc};
	struct goheap *h;
	int fd, r;

	if (argc != 3 || root_open("/proc", &proc) ||
	    pid_read(&proc, (pid_t)strtol(argv[1], NULL, 10), &opts.id) || goheap_new(&opts, &h)) {
		fprintf(stderr, "usage: heapsave PID FILE\n");
		return 2;
	}
	r = save(h, &out);
	goheap_free(h);
	fd = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (r || fd < 0 || write(fd, out.data, out.len) != (ssize_t)out.len) {
		fprintf(stderr, "heapsave: cannot write %s\n", argv[2]);
		return 1;
	}
	close(fd);
	return 0;
}

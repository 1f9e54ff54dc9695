// SPDX-License-Identifier: Apache-2.0
#include "server/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/root.h"
#include "base/strview.h"
#include "base/wall.h"
#include "version.h"

/* Bytes of a file below /proc/self, our own process, whose text has the usual size. Reached: the
 * number is left out. */
#define PROCESS_STAT_MAX 4096

struct process_metrics {
	struct root self;
	double start_s; /* wall clock */
};

/* Fields of /proc/self/stat, counted from 1 as in proc(5). */
#define STAT_STARTTIME 22
#define STAT_VSIZE     23
#define STAT_RSS       24

struct process_stat {
	uint64_t fields[STAT_RSS + 1];
};

/* The name in parentheses may contain any character, so fields are counted from the last
 * parenthesis. */
static bool parse_stat(const struct buf *text, struct process_stat *ret)
{
	struct strview rest = strview_after_last(strview_of_bytes(text->data, text->len), ')'),
		       word;

	*ret = (struct process_stat){{0}};
	for (size_t i = 3; i <= STAT_RSS; i++) {
		if (!strview_word(&rest, &word))
			return false;
		(void)!strview_only_u64(word, 10,
					&ret->fields[i]); /* some are letters or negative */
	}
	return true;
}

static bool read_stat(const struct process_metrics *p, struct process_stat *ret)
{
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(PROCESS_STAT_MAX);

	return root_read(&p->self, "stat", &text) == 0 && parse_stat(&text, ret);
}

int process_metrics_new(struct process_metrics **ret)
{
	struct process_metrics *p = calloc(1, sizeof(*p));
	struct process_stat stat;
	int r;

	if (!p)
		return -ENOMEM;
	p->self = (struct root)ROOT_INIT;
	r = root_open("/proc/self", &p->self);
	if (!r && read_stat(p, &stat)) {
		double boot_s = (double)wall_at_boot() / (double)NSEC_PER_SEC;

		p->start_s =
			boot_s + (double)stat.fields[STAT_STARTTIME] / (double)sysconf(_SC_CLK_TCK);
	}
	*ret = p;
	return 0;
}

void process_metrics_free(struct process_metrics *p)
{
	if (!p)
		return;
	root_deinit(&p->self);
	free(p);
}

static double cpu_seconds(void)
{
	struct rusage usage = {0};

	(void)getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* Without the descriptor of the count itself. */
static bool open_fds(const struct process_metrics *p, uint64_t *ret)
{
	int fd = openat(p->self.fd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(closedirp) DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	if (!dir)
		return false;
	*ret = 0;
	while ((entry = readdir(dir)))
		*ret += entry->d_name[0] != '.';
	*ret -= 1;
	return true;
}

static void emit_u64(struct metric_sink *sink, const char *name, enum metric_type type,
		     const char *unit, const char *help, uint64_t value)
{
	metric_family(sink, &(struct metric_family_desc){name, type, help, unit});
	metric_u64(sink, value, NULL, 0);
}

static void emit_double(struct metric_sink *sink, const char *name, enum metric_type type,
			const char *help, double value)
{
	metric_family(sink, &(struct metric_family_desc){name, type, help, "seconds"});
	metric_double(sink, value, NULL, 0);
}

static void collect_stat(const struct process_metrics *p, struct metric_sink *sink)
{
	struct process_stat stat;

	if (!read_stat(p, &stat))
		return;
	emit_u64(sink, "process_virtual_memory_bytes", METRIC_GAUGE, "bytes",
		 "Virtual memory size in bytes.", stat.fields[STAT_VSIZE]);
	emit_u64(sink, "process_resident_memory_bytes", METRIC_GAUGE, "bytes",
		 "Resident memory size in bytes.",
		 stat.fields[STAT_RSS] * (uint64_t)sysconf(_SC_PAGESIZE));
}

static void collect_fds(const struct process_metrics *p, struct metric_sink *sink)
{
	struct rlimit limit;
	uint64_t n;

	if (open_fds(p, &n))
		emit_u64(sink, "process_open_fds", METRIC_GAUGE, NULL,
			 "Number of open file descriptors.", n);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		emit_u64(sink, "process_max_fds", METRIC_GAUGE, NULL,
			 "Maximum number of open file descriptors.", limit.rlim_cur);
}

static void collect_build(struct metric_sink *sink)
{
	static const struct metric_family_desc build = {"podprof_build", METRIC_INFO,
							"Version of podprof.", NULL};
	struct utsname name = {.machine = "unknown"};

	(void)uname(&name);
	metric_family(sink, &build);
	metric_u64(sink, 1,
		   (struct metric_label[]){{"version", PODPROF_VERSION},
					   {"compiler", __VERSION__},
					   {"arch", name.machine}},
		   3);
}

void process_metrics_collect(void *ctx, struct metric_sink *sink)
{
	const struct process_metrics *p = ctx;

	collect_build(sink);
	emit_double(sink, "process_cpu_seconds", METRIC_COUNTER,
		    "Total user and system CPU time spent in seconds.", cpu_seconds());
	if (p->start_s > 0)
		emit_double(sink, "process_start_time_seconds", METRIC_GAUGE,
			    "Start time of the process since unix epoch in seconds.", p->start_s);
	collect_stat(p, sink);
	collect_fds(p, sink);
}

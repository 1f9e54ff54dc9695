// SPDX-License-Identifier: Apache-2.0
#include "cmd/record_warm.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/root.h"

/* Bytes of a stat file: 52 numbers and a name. Reached: the thread counts as waiting. */
#define STAT_BYTES_MAX	     2048
/* The line about a wait is silent about shorter ones. */
#define RECORD_WARM_NAMED_NS (NSEC_PER_SEC / 20)

bool record_warm_is_over(struct record_warm *w, const struct record_look *look)
{
	const bool is_drained = look->n_drains != w->last.n_drains;
	bool is_missing = false;

	for (size_t i = 0; i < RECORD_NEEDS_MAX; i++) {
		is_missing |= look->n_missing[i] > 0;
		w->missing_ns[i] += look->n_missing[i] ? look->ns - w->last.ns : 0;
	}
	w->n_ready = is_missing ? 0 : w->n_ready + is_drained;
	w->last = *look;
	return w->n_ready >= RECORD_WARM_DRAINS || look->ns >= RECORD_WARM_LOAD_MAX_NS ||
	       (look->ns >= RECORD_WARM_MAX_NS && !look->n_missing[RECORD_NEEDS_WALKS]);
}

void record_warm_show(const struct record_warm *w, FILE *to)
{
	static const char *const names[RECORD_NEEDS_MAX] = {
		[RECORD_NEEDS_TABLES] = "unwind tables",
		[RECORD_NEEDS_WALKS] = "the walk of a language runtime",
		[RECORD_NEEDS_READS] = "names of a language runtime",
		[RECORD_NEEDS_SAMPLES] = "a first sample",
	};
	const char *before = ": ";

	fprintf(to, "waited %.1f s before the recording", (double)w->last.ns / NSEC_PER_SEC);
	for (size_t i = 0; i < RECORD_NEEDS_MAX; i++) {
		if (w->missing_ns[i] < RECORD_WARM_NAMED_NS)
			continue;
		fprintf(to, "%s%.1f s for %s", before, (double)w->missing_ns[i] / NSEC_PER_SEC,
			names[i]);
		before = ", ";
	}
	before = "; still missing: ";
	for (size_t i = 0; i < RECORD_NEEDS_MAX; i++) {
		if (!w->last.n_missing[i])
			continue;
		fprintf(to, "%s%s", before, names[i]);
		if (i == RECORD_NEEDS_TABLES)
			fprintf(to, " (%zu)", w->last.n_missing[i]);
		before = ", ";
	}
	fputc('\n', to);
}

/* The state follows the name, which may have any characters. */
static bool is_runnable(const struct root *proc, pid_t pid, const char *tid)
{
	_cleanup_(buf_deinit) struct buf stat = BUF_INIT(STAT_BYTES_MAX);
	const char *end;
	char path[64];

	snprintf(path, sizeof(path), "%d/task/%.20s/stat", (int)pid, tid);
	if (root_read_whole(proc, path, &stat))
		return false;
	end = strrchr(stat.data, ')');
	return end && end[1] == ' ' && end[2] == 'R';
}

bool record_warm_runs(const struct root *proc, pid_t pid)
{
	const struct dirent *entry;
	bool runs = false;
	char path[32];
	int fd = -1;
	DIR *dir;

	snprintf(path, sizeof(path), "%d/task", (int)pid);
	if (root_open_dir_inside(proc, path, &fd))
		return false;
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return false;
	}
	for (size_t n = 0; !runs && n < RECORD_WARM_THREADS_MAX && (entry = readdir(dir)); n++)
		runs = entry->d_name[0] != '.' && is_runnable(proc, pid, entry->d_name);
	closedir(dir);
	return runs;
}

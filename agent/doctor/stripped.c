// SPDX-License-Identifier: Apache-2.0
/*
 * Distributions strip programs. A profile then has the names of exported functions only, and the
 * remedy is not on the page of an agent that has not started yet.
 */
#include "doctor/stripped.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "base/work_budget.h"
#include "config/config.h"
#include "discovery/pid.h"
#include "doctor/finding.h"
#include "doctor/probe_results.h"
#include "elf/elffile.h"
#include "procmap/maps.h"
#include "symbolize/debugfile.h"
#include "symbolize/source.h"

/* Units of work on a program; a debug file without a build id is read whole. Reached: the debug
 * file counts as absent. */
#define STRIPPED_WORK	(1u << 28)
/* The same as CPU time. */
#define STRIPPED_CPU_NS (200 * NSEC_PER_MSEC)

static bool has_names(const struct elffile *file)
{
	static const char *const names[] = {".symtab", ".gopclntab", ".gnu_debugdata"};
	struct elffile_section section;

	for (size_t i = 0; i < array_size(names); i++)
		if (elffile_section(file, names[i], &section) == 0 && section.size)
			return true;
	return false;
}

/* 0 if there is a debug file, above 0 if not, -ENOMEM. */
static int find_debug_file(const struct elffile *opened, const struct root *proc,
			   const struct pid_id *id, const char *path)
{
	_cleanup_(elffile_freep) struct elffile *file = NULL;
	char build_id[ELFFILE_BUILD_ID_TEXT];
	struct debugfile debug = {0};
	const struct elffile *found;
	struct work_budget work;
	struct source_file of;
	int r;

	work_budget_init(&work, STRIPPED_WORK, STRIPPED_CPU_NS, NULL);
	r = elffile_budgeted(opened, &work, &file);
	if (r)
		return r;
	elffile_build_id_text(file, build_id);
	of = (struct source_file){
		.elf = file,
		.build_id = build_id,
		.path = path,
		.proc = proc,
		.pid = *id,
		.work = &work,
		.debug = &debug,
	};
	r = debugfile_find(&of, &found);
	debugfile_deinit(&debug);
	return r;
}

static bool is_seen(const struct stripped *s, const struct file_id *id)
{
	for (size_t i = 0; i < s->n; i++)
		if (file_id_equal(&s->seen[i], id))
			return true;
	return false;
}

int stripped_add(struct stripped *s, const struct root *proc, const struct pid_id *id,
		 const struct maps_entry *entry, int fd)
{
	_cleanup_(elffile_freep) struct elffile *file = NULL;
	struct file_id file_id;
	struct stat st;
	int r;

	if (fstat(fd, &st) || s->n == STRIPPED_PROGRAMS_MAX) {
		close(fd);
		return 0;
	}
	file_id = file_id_of_stat(&st);
	r = is_seen(s, &file_id) ? 1 : elffile_open(fd, &file);
	if (r) {
		close(fd);
		return r == -ENOMEM ? r : 0;
	}
	s->seen[s->n++] = file_id;
	if (has_names(file))
		return 0;
	r = find_debug_file(file, proc, id, entry->path);
	if (r > 0 && !s->n_stripped++)
		finding_text(s->example, sizeof(s->example), strview_of(entry->path));
	return r < 0 ? r : 0;
}

void stripped_check(const struct probe_results *results, struct findings *ret)
{
	const struct stripped *s = &results->reading.stripped;

	if (!results->config->cpu_rate || !s->n)
		return;
	if (!s->n_stripped)
		findings_add(ret, "function names", FINDING_OK, "all %zu programs have symbols",
			     s->n);
	else
		findings_add(ret, "function names", FINDING_OK,
			     "%zu of %zu programs are stripped, %s the first: static functions "
			     "are shown as NAME+0xSTART%s",
			     s->n_stripped, s->n, s->example,
			     results->config->debuginfod.n
				     ? "; the servers of --debuginfod are asked"
				     : "; packages of debug symbols or --debuginfod name them");
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROCMAP_MAPS_H
#define PODPROF_PROCMAP_MAPS_H

/* /proc/PID/maps, one entry a line (proc(5)). */

#include <stddef.h>
#include <stdint.h>

#include "base/strview.h"
#include "discovery/pid.h"

struct root;

enum maps_prot { MAPS_R = 1, MAPS_W = 2, MAPS_X = 4, MAPS_SHARED = 8 };

enum maps_kind {
	MAPS_FILE,  /* backed by a file, possibly deleted */
	MAPS_ANON,  /* anonymous, [heap], [stack], [anon:...], memfd and SysV segments */
	MAPS_VDSO,  /* [vdso] */
	MAPS_OTHER, /* [vvar], [vsyscall], [uprobes]: nothing to read there */
};

/* Entries kept; counted in n_skipped. The kernel's default for vm.max_map_count is 65530. Reached:
 * the process has its first 65,536 entries. */
#define MAPS_ENTRIES_MAX 65536
/* Bytes of all paths kept; counted in n_skipped. 65,536 entries with paths of 256 bytes. Reached:
 * the first so many. */
#define MAPS_PATHS_MAX	 (16u << 20)

struct maps_entry {
	uint64_t start;
	uint64_t limit;	 /* one past the last byte */
	uint64_t offset; /* into the file */
	uint64_t device; /* makedev() of the numbers in the line */
	uint64_t inode;
	uint32_t prot; /* enum maps_prot */
	uint32_t kind; /* enum maps_kind */
	char *path; /* as shown, newlines unescaped and " (deleted)" cut off; owned; "" if none */
	int deleted;
};

/**
 * struct maps - the entries of one process; {0} is empty
 * @only_prot: set before reading: keep only entries with one of these bits; 0 keeps all
 * @inode:     of the process's directory in /proc, for pid_check_inode(); before reading that of an
 *             earlier check, or 0
 * @begin_ns:  boot clock, before the read
 * @cpu_ns:    CPU time of the read
 * @via_pid:   the directory in /proc that was read: the process's own, or that of a living thread
 *             if the leader is dead ("/proc/TID" works for threads too)
 */
struct maps {
	uint32_t only_prot;
	uint64_t inode;
	uint64_t begin_ns;
	uint64_t cpu_ns;
	uint64_t via_pid;
	struct maps_entry *items; /* ascending, not overlapping */
	size_t n;
	size_t cap;
	size_t n_path_bytes;
	size_t n_skipped; /* lines that were not parsed, or above the ceiling */
};

enum maps_outcome {
	MAPS_OK = 0,
	MAPS_GONE, /* the process has ended, or the pid belongs to another process */
	MAPS_DENIED,
	MAPS_TOO_LARGE,
	MAPS_SLOW, /* blocks its reader: not from maps_read() (procmap/opener.h) */
	MAPS_OUTCOME_MAX,
};

/* Adds the entries of @n bytes of text. 0 or -ENOMEM; invalid lines are counted. */
int maps_parse(const char *text, size_t n, struct maps *m);
/* @ret must be empty. The identity is checked after the read. A dead leader's maps are read through
 * a living thread. A process without user memory (kernel thread, zombie) has no entries. On a
 * failure @ret stays empty. */
int maps_read(const struct root *proc, const struct pid_id *id, struct maps *ret);
void maps_deinit(struct maps *m);
/* The entry around @pc, borrowed, or NULL. */
const struct maps_entry *maps_find(const struct maps *m, uint64_t pc);

/* Inserts a copy of @entry in order. The copy replaces the covered parts of other entries. 0,
 * -ENOMEM; MAPS_TOO_LARGE above MAPS_ENTRIES_MAX. */
int maps_cover(struct maps *m, const struct maps_entry *entry);
/* Classifies a mapping by the kernel's name: sets kind and deleted. Returns the name without "
 * (deleted)". */
struct strview maps_classify(struct strview name, struct maps_entry *e);

const char *maps_outcome_name(int outcome);

#endif

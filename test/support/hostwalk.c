// SPDX-License-Identifier: Apache-2.0
#include "support/hostwalk.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "lib/table_host.h"
#define WALK_RUNTIMES
#include "lib/walk.bpf.h"
#include "elf/elffile.h"
#include "procmap/maps.h"
#include "support/hostspace.h"
#include "support/walkregs.h"
#include "unwindtable/compile.h"
#include "unwindtable/table.h"

_Static_assert(HOSTWALK_SLOTS == WALK_SLOTS, "the walker's slots");

struct hostwalk {
	struct hostspace kernel;    /* first: the accessors receive the address */
	int mem;		    /* /proc/PID/mem */
	uint64_t thread_pointer;    /* of the walked thread */
	struct memo *memo;	    /* in cache lines, as in the kernel */
	struct object_memo objects; /* of one process */
	/* Of a walk, each in separate cache lines. */
	_Alignas(MEMO_LINE) struct walk walk;
	_Alignas(MEMO_LINE) struct regs regs;
	_Alignas(MEMO_LINE) struct window window;
	_Alignas(MEMO_LINE) __u64 frames[WALK_SLOTS];
	_Alignas(MEMO_LINE) struct trail trail;
	struct walk_room room;
	const struct walk_runtime *step; /* NULL: native frames alone */
	const void *record;		 /* of the process, for @step */
	struct hostwalk_read reads[HOSTWALK_READS];
	size_t n_reads;
};

DEFINE_CLEANUP(struct hostwalk *, hostwalk_freep, hostwalk_free);
DEFINE_CLEANUP(struct table *, table_freep, table_free);

/* ---------------------------------------------------------------- accessors */

WINDOW_INLINE int window_read(const struct table_space *space, void *to, __u64 n, __u64 address)
{
	struct hostwalk *h = (struct hostwalk *)space;

	if (pread(h->mem, to, n, (off_t)address) != (ssize_t)n)
		return -1;
	if (h->n_reads < HOSTWALK_READS)
		h->reads[h->n_reads++] = (struct hostwalk_read){address, n};
	return 0;
}

WALK_INLINE __u64 walk_thread_pointer(const struct table_space *space)
{
	return ((const struct hostwalk *)space)->thread_pointer;
}

WALK_INLINE const struct table_exe *walk_exe(const struct table_space *space, __u32 exe)
{
	return hostspace_exe((const struct hostspace *)space, exe);
}

WALK_INLINE void walk_used(const struct table_space *space, __u32 exe, __u64 n_frames)
{
	hostspace_used((struct hostspace *)space, exe, n_frames);
}

static struct hostwalk *of_walk(const struct walk_ctx *c)
{
	return (struct hostwalk *)c->space;
}

WALK_INLINE struct walk_room *walk_room(const struct walk_ctx *c)
{
	return &of_walk(c)->room;
}

#define PROCESS_OF(NAME, name)                                                               \
	WALK_INLINE const struct name##_process *name##_process_of(const struct walk_ctx *c) \
	{                                                                                    \
		return of_walk(c)->record;                                                   \
	}
FRAME_RUNTIMES(PROCESS_OF)

/* ---------------------------------------------------------------- images */

static int open_vdso(const struct hostwalk *h, const struct maps_entry *e, struct elffile **ret,
		     void **ret_bytes)
{
	const size_t n = e->limit - e->start;

	*ret_bytes = malloc(n);
	if (!*ret_bytes || pread(h->mem, *ret_bytes, n, (off_t)e->start) != (ssize_t)n)
		return -ENOMEM;
	return elffile_open_memory(*ret_bytes, n, ret);
}

/* vaddr - pc, by the mapping's code segment. Two segments may share a page of the file, where one
 * ends and the other begins. */
static bool bias_of(const struct elffile *file, const struct maps_entry *e, uint64_t *ret)
{
	size_t n;
	const struct elffile_segment *s = elffile_segments(file, &n);

	for (size_t i = 0; i < n; i++)
		if ((s[i].flags & PF_X) && s[i].off < e->offset + (e->limit - e->start) &&
		    e->offset < s[i].off + s[i].filesz) {
			*ret = e->start - e->offset - (s[i].vaddr - s[i].off);
			return true;
		}
	return false;
}

/* Compile the table of the image mapped by @e. Returns the number of the image, 0 without a table,
 * -errno. */
static int add_image(struct hostwalk *h, pid_t pid, const struct maps_entry *e, uint64_t *ret_bias)
{
	_cleanup_(elffile_freep) struct elffile *file = NULL;
	_cleanup_(rows_freep) struct rows *rows = NULL;
	_cleanup_(table_freep) struct table *table = NULL;
	_cleanup_(close_fdp) int fd = -1;
	_cleanup_(freep) void *bytes = NULL;
	struct ehframe_stats stats;
	char path[96];
	int r;

	if (e->kind == MAPS_VDSO) {
		r = open_vdso(h, e, &file, &bytes);
	} else {
		snprintf(path, sizeof(path), "/proc/%d/map_files/%jx-%jx", pid, (uintmax_t)e->start,
			 (uintmax_t)e->limit);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		r = fd < 0 ? -errno : elffile_open(fd, &file);
	}
	if (r || compile_image(file, &stats, &rows) || table_pack(rows, &table) ||
	    !bias_of(file, e, ret_bias))
		return r < 0 ? r : 0;
	return hostspace_add_table(&h->kernel, table);
}

static int add_mappings(struct hostwalk *h, pid_t pid, const struct maps *maps)
{
	int r = hostspace_init(&h->kernel, maps->n);

	if (r)
		return r;
	for (size_t i = 0; i < maps->n; i++) {
		const struct maps_entry *e = &maps->items[i];
		struct process_mapping m = {
			.start_pages = e->start >> PROCESS_PAGE_SHIFT,
			.n_pages = (e->limit - e->start) >> PROCESS_PAGE_SHIFT,
		};
		uint64_t bias = 0;
		int exe = 0;

		if (e->kind == MAPS_FILE || e->kind == MAPS_VDSO)
			exe = add_image(h, pid, e, &bias);
		if (exe < 0)
			return exe;
		m.bias_pages = bias >> PROCESS_PAGE_SHIFT;
		m.exe = (uint16_t)exe;
		hostspace_map(&h->kernel, i, &m);
	}
	return 0;
}

int hostwalk_new(pid_t pid, struct hostwalk **ret)
{
	_cleanup_(hostwalk_freep) struct hostwalk *h = aligned_alloc(MEMO_LINE, sizeof(*h));
	_cleanup_(maps_deinit) struct maps maps = {.only_prot = MAPS_X};
	_cleanup_(root_deinit) struct root proc = ROOT_INIT;
	struct pid_id id;
	char path[64];
	int r;

	if (!h)
		return -ENOMEM;
	memset(h, 0, sizeof(*h));
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	h->mem = open(path, O_RDONLY | O_CLOEXEC);
	if (h->mem < 0)
		return -errno;
	h->memo = aligned_alloc(MEMO_LINE, sizeof(*h->memo));
	if (!h->memo)
		return -ENOMEM;
	memset(h->memo, 0, sizeof(*h->memo));
	r = root_open("/proc", &proc);
	if (!r)
		r = pid_read(&proc, pid, &id);
	if (!r)
		r = maps_read(&proc, &id, &maps);
	if (!r)
		r = add_mappings(h, pid, &maps);
	if (r)
		return r < 0 ? r : -ESRCH;
	*ret = take_ptr(h);
	return 0;
}

void hostwalk_free(struct hostwalk *h)
{
	if (!h)
		return;
	if (h->mem >= 0)
		close(h->mem);
	hostspace_deinit(&h->kernel);
	free(h->memo);
	free(h);
}

/* ---------------------------------------------------------------- walking */

#if defined(__x86_64__)
int hostwalk_regs(pid_t pid, struct hostwalk_regs *ret)
{
	struct user_regs_struct u;
	struct iovec iov = {&u, sizeof(u)};

	if (ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &iov) < 0)
		return -errno;
	*ret = (struct hostwalk_regs){
		.pc = u.rip,
		.sp = u.rsp,
		.fp = u.rbp,
		.thread_pointer = u.fs_base,
		.numbered = {u.rax, u.rdx, u.rcx, u.rbx, u.rsi, u.rdi, 0, 0, u.r8, u.r9, u.r10,
			     u.r11, u.r12, u.r13, u.r14, u.r15},
		.in_syscall = (int64_t)u.orig_rax >= 0 && u.rcx == u.rip,
	};
	return 0;
}
#else
int hostwalk_regs(pid_t pid, struct hostwalk_regs *ret)
{
	struct regs u;
	struct iovec iov = {&u, sizeof(u)};

	if (ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &iov) < 0)
		return -errno;
	*ret = (struct hostwalk_regs){.pc = u.pc, .sp = u.sp, .fp = u.x[29]};
	memcpy(ret->numbered, u.x, sizeof(ret->numbered));
	return 0;
}
#endif

void hostwalk_set_runtime(struct hostwalk *h, uint32_t runtime, const void *record)
{
#define STEP_ROW(NAME, name) [FRAME_RUNTIME_##NAME] = &name##_walk,
	static const struct walk_runtime *const steps[FRAME_RUNTIME_MAX] = {
		[FRAME_RUNTIME_NONE] = NULL, FRAME_RUNTIMES(STEP_ROW)};

	h->step = steps[runtime];
	h->record = record;
}

void hostwalk_walk(struct hostwalk *h, const struct hostwalk_regs *from, enum settings_unwind mode,
		   struct hostwalk_stack *ret)
{
	const struct walk_ctx c = {
		.w = &h->walk,
		.regs = &h->regs,
		.win = &h->window,
		.frames = h->frames,
		.space = &h->kernel.space,
		.memo = h->memo,
		.trail = &h->trail,
		.objects = &h->objects,
		.identity = 1,
		.mode = mode,
	};

	/* What the kernel's program sets before walk_begin(), and no more: bench_lines counts. */
	h->walk.first = 0;
	h->walk.flags = 0;
	h->walk.hash = 0;
	if (h->step)
		memset(&h->walk.aside, 0, sizeof(h->walk.aside));
	h->regs = walk_regs(from->pc, from->sp, from->fp, from->numbered, from->in_syscall);
	h->n_reads = 0;
	h->thread_pointer = from->thread_pointer;
	walk_begin(&c, 0, h->kernel.n_mappings);
	trail_follow(&h->trail, h->memo);
	for (int i = 0; i < WALK_PROGRAMS && h->walk.end == WALK_ON; i++)
		walk_on(&c, h->step);
	trail_end(&h->trail, h->walk.n_sets);
	memcpy(ret->pcs, h->frames, h->walk.n * sizeof(h->frames[0]));
	ret->n = h->walk.n;
	ret->n_rows = h->walk.n_rows;
	ret->end = h->walk.end;
	ret->flags = h->walk.flags;
}

/* The number of the executable at @pc, 0 if there is none. */
static uint64_t exe_at(const struct hostwalk *h, uint64_t pc)
{
	struct mapping m = {0};

	return mapping_find(&h->kernel.space, 0, h->kernel.n_mappings, pc, &m) ? 0 : m.exe;
}

bool hostwalk_is_code(struct hostwalk *h, uint64_t pc)
{
	struct mapping m = {0};

	return !mapping_find(&h->kernel.space, 0, h->kernel.n_mappings, pc, &m);
}

bool hostwalk_bias(struct hostwalk *h, uint64_t pc, uint64_t *ret)
{
	struct mapping m = {0};

	if (mapping_find(&h->kernel.space, 0, h->kernel.n_mappings, pc, &m))
		return false;
	*ret = m.bias;
	return true;
}

bool hostwalk_rule(struct hostwalk *h, uint64_t pc, struct unwind_rule *ret)
{
	struct mapping m = {0};

	if (mapping_find(&h->kernel.space, 0, h->kernel.n_mappings, pc, &m) || !m.exe)
		return false;
	return table_find(&h->kernel.space, &h->kernel.exes[m.exe], pc - m.bias, ret) ==
	       TABLE_FOUND;
}

void hostwalk_evict(struct hostwalk *h, uint64_t pc)
{
	h->kernel.exes[exe_at(h, pc)].n_blocks = 0;
}

uint64_t hostwalk_uses(struct hostwalk *h, uint64_t pc)
{
	return h->kernel.uses[exe_at(h, pc)];
}

struct hostwalk_space hostwalk_space(const struct hostwalk *h)
{
	return (struct hostwalk_space){
		.table_pages = h->kernel.table_pages,
		.rules = h->kernel.rules,
		.rule_runs = h->kernel.rule_runs,
		.exes = h->kernel.exes,
		.n_table_pages = h->kernel.space.n_table_pages,
		.n_rules = h->kernel.space.n_rules,
		.n_rule_runs = h->kernel.space.n_rule_runs,
		.n_exes = h->kernel.n_exes,
		.n_mappings = h->kernel.n_mappings,
		.memo = h->memo,
		.trail = (struct trail *)&h->trail,
		.state = &h->walk,
		.state_bytes = sizeof(h->walk),
		.regs = &h->regs,
		.regs_bytes = sizeof(h->regs),
		.window = &h->window,
		.window_bytes = sizeof(h->window),
		.frames = h->frames,
	};
}

const struct hostwalk_read *hostwalk_reads(const struct hostwalk *h, size_t *ret_n)
{
	*ret_n = h->n_reads;
	return h->reads;
}

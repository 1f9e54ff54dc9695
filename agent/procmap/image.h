/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROCMAP_IMAGE_H
#define PODPROF_PROCMAP_IMAGE_H

/*
 * A mapped file, shared by all its targets. /proc/PID/map_files/START-LIMIT opens the
 * mapped file itself, even if the file is deleted, upgraded or in another mount namespace. Without
 * the right to do so, podprof opens the path below /proc/PID/root. The descriptor stays open while
 * the image lives, so sampled addresses have names even after the end of the process.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file_id.h"
#include "discovery/pid.h"
#include "elf/elffile.h"

/* Kinds of code. The kind of a frame is the kind of its image. */
enum image_kind {
	IMAGE_FILE,
	IMAGE_VDSO,    /* bytes copied from the agent's own vDSO */
	IMAGE_KERNEL,  /* frames' vaddr is the kernel's pc */
	IMAGE_ANON,    /* code in the memory of one process (JIT); vaddr is the run-time pc */
	IMAGE_UNKNOWN, /* no mapping holds the pc, or the process had gone before we could look */
	IMAGE_RUNTIME, /* a function of a language runtime (@function); vaddr is the line */
	IMAGE_BROKEN,  /* unknown frames of a language runtime (@function: why); vaddr is 0 */
	IMAGE_KIND_MAX,
};

/* Why a mapped file has no readable ELF file. */
enum image_fault {
	IMAGE_NO_FAULT,
	IMAGE_GONE,	 /* the file could not be opened */
	IMAGE_DENIED,	 /* the agent may not open the file */
	IMAGE_TRUNCATED, /* an ELF file whose headers or tables leave the file */
	IMAGE_ODD_FILE,	 /* no ELF file, or no 64-bit one */
};

/* A function of a language runtime. */
struct image_function {
	const char *name;    /* for people; UTF-8 */
	const char *file;    /* or module; "" if not known */
	uint32_t start_line; /* 0 if not known */
};

/* What is known of an image whose file another thread opens. */
enum image_opening_state {
	IMAGE_UNASKED, /* nobody needs the file yet */
	IMAGE_WANTED,  /* in the queue */
	IMAGE_ASKED,   /* with the thread */
	IMAGE_SLOW,    /* the file system did not answer; not asked again before @until_ns */
	IMAGE_OPENED,
};

/**
 * struct image_opening - the mapping of an image whose file another thread opens
 * @opened:        the image of the opened file; a reference; NULL until then. Any thread may read
 *                 it by frame_settle(), and only the loop sets it, once
 * @guess:         the image with the kernel's numbers of this file; a reference; NULL: unknown.
 *                 Good enough for unwinding until the file is open, not for names
 * @start:         address of the mapping
 * @offset:        its offset in the file
 * @state:         this and the next members belong to the address space, on the loop
 * @by_record:     the mapping is known from an event alone
 * @until_ns:      monotonic, for IMAGE_SLOW
 * @n_pcs:         resolved pcs without an outcome
 */
struct image_opening {
	struct image *opened;
	struct image *guess;
	uint64_t start;
	uint64_t offset;
	enum image_opening_state state;
	bool by_record;
	bool deleted;
	uint32_t kind; /* enum maps_kind */
	uint64_t until_ns;
	uint64_t n_pcs;
};

struct frame;

/**
 * struct image - one mapped file or other origin of code
 * @path:     as the target sees it, for people; "[vdso]", "[kernel.kallsyms]", "[anon]",
 *            "[anon:NAME]", "/memfd:NAME", "[unknown]"; the runtime's, "[python]", for a function
 * @build_id: lower-case hex, "" if there is none
 * @mapped_by: the first process with a mapping of the file, for files beside it; of IMAGE_ANON: the
 *            process; {0}: not known
 * @began_ns: boot clock; of IMAGE_ANON: when the program of the process began, by its exec; 0: with
 *            the process, or not known
 * @wall_at_boot_ns: wall_at_boot() when the image was made
 * @file:     NULL unless it is a readable ELF file; reading through it is thread-safe (pread)
 * @fault:    of IMAGE_FILE without @file; IMAGE_NO_FAULT: not opened yet
 * @bytes:    of the vDSO, read by @file; else NULL
 * @perf_map: of IMAGE_ANON: the process's perf map, opened while it lived; -1: not seen. Atomic,
 * set once; reading it may block
 * @jitdump:  the same of the process's jitdump
 * @function: of IMAGE_RUNTIME and IMAGE_BROKEN; else all NULL
 * @places:   of IMAGE_RUNTIME: the functions that are inlined into one another, @n_places frames
 *            with references, innermost first. The last is @function itself, without places. NULL:
 *            nothing is inlined
 * @checked_ns: of IMAGE_FILE, atomic: boot clock, when the file was last seen unchanged; 0: never
 * @no_runtimes: of IMAGE_FILE, on the loop: bits by enum frame_runtime. The runtime is not in the
 *            file; else it is, or is not known
 * @opening:  NULL, except for a file that is opened on another thread. Such an image has a path and
 *            no file, its frames' vaddr is the pc, and frame_settle() finds the image of the file
 *
 * The loop and the workers may hold an image at the same time: it is immutable except for its
 * atomic members and @opening. @id is the identity of the opened file. If the file cannot be
 * opened, device and inode come from /proc/PID/maps, where overlayfs and btrfs may show other
 * numbers; the rest is then 0. The @id of an IMAGE_ANON is of no file, but no other image has it.
 */
struct image {
	enum image_kind kind;
	char *path;
	char build_id[ELFFILE_BUILD_ID_TEXT];
	struct file_id id; /* zeros for kinds without a file but IMAGE_ANON */
	struct pid_id mapped_by;
	uint64_t began_ns;
	uint64_t wall_at_boot_ns;
	struct elffile *file;
	enum image_fault fault;
	void *bytes;
	int perf_map;
	int jitdump;
	struct image_function function;
	struct frame *places;
	size_t n_places;
	uint64_t slow_until_ns; /* atomic; see image_set_slow() */
	unsigned int n_slow;	/* atomic */
	uint64_t checked_ns;
	uint32_t no_runtimes;
	struct image_opening *opening;
	int refs;
};

/* Each makes an image with one reference, owned by the caller. 0 or -errno. @path is copied. */
int image_new(enum image_kind kind, const char *path, struct image **ret);
/* An IMAGE_RUNTIME or IMAGE_BROKEN. @function is copied. */
int image_new_function(enum image_kind kind, const char *path,
		       const struct image_function *function, struct image **ret);
/* An IMAGE_RUNTIME with the function of the last of @n frames, and the others inlined. The frames
 * are of IMAGE_RUNTIMEs without places; references are taken. */
int image_new_inlined(const struct frame *places, size_t n, struct image **ret);
/* An IMAGE_FILE of the regular file @fd; takes @fd on success. A file that is not ELF, or is
 * broken, gives an image without @file. @ret_elf receives the outcome (enum elffile_outcome). */
int image_new_file(int fd, const char *path, struct image **ret, int *ret_elf);
/* The vDSO of this process; the kernel gives the same vDSO to all 64-bit processes. Without a vDSO,
 * an image without @file. */
int image_new_vdso(struct image **ret);

/* An IMAGE_FILE that is not opened yet. @start and @offset are the mapping's. */
int image_new_opening(const char *path, uint64_t start, uint64_t offset, struct image **ret);
/* The image to unwind with: @image, or the guess; NULL if there is none. Borrowed. */
struct image *image_to_unwind(struct image *image);
/* The perf map of the process, found now. Takes @fd. */
void image_set_perf_map(struct image *image, int fd);
/* -1: not seen. Borrowed. */
int image_perf_map(const struct image *image);
/* The same of the jitdump. */
void image_set_jitdump(struct image *image, int fd);
int image_jitdump(const struct image *image);
/* The file's image is known. Takes @opened. */
void image_set_opened(struct image *image, struct image *opened);
/* podprof exits: closing the file may block, and is left to the kernel. */
void image_leave_open(struct image *image);

struct image *image_ref(struct image *image);
/* NULL is fine. Returns NULL. */
struct image *image_unref(struct image *image);
/* A read of the file has blocked its thread: nobody reads the file until a cooldown has passed. The
 * cooldown doubles each time. Any thread. */
void image_set_slow(struct image *image);
bool image_is_slow(const struct image *image);
/* "file", "vdso", "kernel", "anon", "unknown", "runtime", "broken". */
const char *image_kind_name(enum image_kind kind);
/* The last component of the path; borrowed. */
const char *image_name(const struct image *image);
/* The vaddr of file offset @off, computed from the segment around @off. Without a readable file,
 * @off itself. False if there are segments, but none contains @off. */
bool image_vaddr_of_off(const struct image *image, uint64_t off, uint64_t *ret_vaddr);

/* The difference between a pc in a mapping of @image and its vaddr. The mapping has @length bytes
 * at @start, from file offset @off on. The executable segment with a part of the mapping decides;
 * false if there is none. */
bool image_bias(const struct image *image, uint64_t start, uint64_t length, uint64_t off,
		uint64_t *ret_bias);
/* What happened to the opened file since the image was made. */
enum image_change {
	IMAGE_SAME,
	IMAGE_TOUCHED, /* unlinked, renamed or chmod; or written to, and its time set back */
	IMAGE_WRITTEN, /* or not readable any more */
};
enum image_change image_change(struct image *image);
/* Whether the opened file has the content of the image: unchanged, or with the same build id.
 * Without a build id, a file with the same segments and size counts as the same. Reads a changed
 * file. */
bool image_has_content(struct image *image);
/* At @at_ns (boot clock) the file was the one of the image. */
void image_set_checked(struct image *image, uint64_t at_ns);
/* Whether the file was last seen unchanged at @since_ns (boot clock) or later. */
bool image_checked_since(const struct image *image, uint64_t since_ns);

/* A place in a program, resolved from a pc and the mappings at the time of the sample, or from a
 * language runtime's frame while the process lives. The holder says whether the reference is
 * borrowed or owned. For IMAGE_FILE and IMAGE_VDSO @vaddr is the ELF virtual address; enum
 * image_kind has the others. */
struct frame {
	struct image *image;
	uint64_t vaddr;
};

/* The same place in the opened file, if it is opened by now. Else, for an image with @opening, the
 * offset in the file instead of the pc. Any other frame is unchanged. The image is borrowed from
 * that of @frame. Any thread. */
struct frame frame_settle(const struct frame *frame);

#endif

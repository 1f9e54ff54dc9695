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

#include "elf/elffile.h"

/* Kinds of code. The kind of a frame is the kind of its image. */
enum image_kind {
	IMAGE_FILE,
	IMAGE_VDSO,    /* bytes copied from the agent's own vDSO */
	IMAGE_KERNEL,  /* frames' vaddr is the kernel's pc */
	IMAGE_ANON,    /* code in anonymous memory (JIT); vaddr is the run-time pc */
	IMAGE_UNKNOWN, /* no mapping holds the pc, or the process had gone before we could look */
	IMAGE_RUNTIME, /* a function of a language runtime (@function); vaddr is the line */
	IMAGE_BROKEN,  /* unknown frames of a language runtime (@function: why); vaddr is 0 */
	IMAGE_KIND_MAX,
};

/* A function of a language runtime. */
struct image_function {
	const char *name;    /* for people; UTF-8 */
	const char *file;    /* or module; "" if not known */
	uint32_t start_line; /* 0 if not known */
};

/**
 * struct image - one mapped file or other origin of code
 * @path:     as the target sees it, for people; "[vdso]", "[kernel.kallsyms]", "[anon]",
 *            "[unknown]"; the runtime's, "[python]", for a function
 * @build_id: lower-case hex, "" if there is none
 * @file:     NULL unless it is a readable ELF file; reading through it is thread-safe (pread)
 * @bytes:    of the vDSO, read by @file; else NULL
 * @function: of IMAGE_RUNTIME and IMAGE_BROKEN; else all NULL
 *
 * The loop and the workers may hold an image at the same time: it is immutable except for its
 * atomic members. @device and @inode are the numbers of the opened file. If the file cannot
 * be opened, they come from /proc/PID/maps, where overlayfs and btrfs may show other numbers; @size
 * is then 0.
 */
struct image {
	enum image_kind kind;
	char *path;
	char build_id[2 * ELFFILE_BUILD_ID_MAX + 1];
	uint64_t device; /* 0 for kinds without a file */
	uint64_t inode;
	uint64_t size;
	uint64_t mtime_ns;
	struct elffile *file;
	void *bytes;
	struct image_function function;
	uint64_t slow_until_ns; /* atomic; see image_set_slow() */
	unsigned int n_slow;	/* atomic */
	int refs;
};

/* Each makes an image with one reference, owned by the caller. 0 or -errno. @path is copied. */
int image_new(enum image_kind kind, const char *path, struct image **ret);
/* An IMAGE_RUNTIME or IMAGE_BROKEN. @function is copied. */
int image_new_function(enum image_kind kind, const char *path,
		       const struct image_function *function, struct image **ret);
/* An IMAGE_FILE of the regular file @fd; takes @fd on success. A file that is not ELF, or is
 * broken, gives an image without @file. @ret_elf receives the outcome (enum elffile_outcome). */
int image_new_file(int fd, const char *path, struct image **ret, int *ret_elf);
/* The vDSO of this process; the kernel gives the same vDSO to all 64-bit processes. Without a vDSO,
 * an image without @file. */
int image_new_vdso(struct image **ret);

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
/* Whether the opened file is unmodified since the image was made. */
bool image_unchanged(const struct image *image);

/* One place in a program, resolved from a pc and the mappings of its time, or from a language
 * runtime's frame while the process lives. The holder says whether the reference is borrowed or
 * owned. For IMAGE_FILE and IMAGE_VDSO @vaddr is the ELF virtual address; enum image_kind has the
 * others. */
struct frame {
	struct image *image;
	uint64_t vaddr;
};

#endif

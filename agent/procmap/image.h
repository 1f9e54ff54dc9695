/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROCMAP_IMAGE_H
#define PODPROF_PROCMAP_IMAGE_H

/*
 * One mapped file, shared by all targets that map it. It is opened through
 * /proc/PID/map_files/START-LIMIT, which gives the very file that is mapped, deleted, upgraded or
 * in another mount namespace; where that is not permitted, through /proc/PID/root below that root.
 * The descriptor stays open while the image lives, so that what was sampled can still be named when
 * the process has gone.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/elffile.h"

/* Kinds of code. The kind of a frame is the kind of its image. */
enum image_kind {
	IMAGE_FILE,
	IMAGE_VDSO,    /* its bytes were copied out of this process's own */
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
 * struct image - immutable after it is made, except for its reference count (atomic), so that the
 * loop and the workers may hold it at the same time
 * @path:     as the target sees it, for people; "[vdso]", "[kernel.kallsyms]", "[anon]",
 * "[unknown]"; the runtime's, "[python]", for a function
 * @build_id: lower-case hex, "" if there is none
 * @file:     NULL unless it is a readable ELF file; reading through it is thread-safe (pread)
 * @bytes:    of the vDSO, which @file reads; else NULL
 * @function: of IMAGE_RUNTIME and IMAGE_BROKEN; else all NULL
 *
 * @device and @inode are those of the opened file. Where it could not be opened they are what
 * /proc/PID/maps shows, which on overlayfs and btrfs may be other numbers; @size is 0 then.
 */
struct image {
	enum image_kind kind;
	char *path;
	char build_id[2 * ELFFILE_BUILD_ID_MAX + 1];
	uint64_t device; /* 0 for the kinds that are no file */
	uint64_t inode;
	uint64_t size;
	uint64_t mtime_ns;
	struct elffile *file;
	void *bytes;
	struct image_function function;
	int refs;
};

/* Each makes an image with one reference, which is the caller's. 0 or -errno. @path is copied. */
int image_new(enum image_kind kind, const char *path, struct image **ret);
/* An IMAGE_RUNTIME or IMAGE_BROKEN. @function is copied. */
int image_new_function(enum image_kind kind, const char *path,
		       const struct image_function *function, struct image **ret);
/* An IMAGE_FILE of the regular file @fd; takes @fd on success. A file that is not ELF, or that is
 * broken, is an image without @file, and its outcome (enum elffile_outcome) goes to @ret_elf. */
int image_new_file(int fd, const char *path, struct image **ret, int *ret_elf);
/* The vDSO that the kernel gave this process; it gives the same one to all 64-bit processes. An
 * image without @file where there is none. */
int image_new_vdso(struct image **ret);

struct image *image_ref(struct image *image);
/* NULL is fine. Returns NULL. */
struct image *image_unref(struct image *image);
/* "file", "vdso", "kernel", "anon", "unknown", "runtime", "broken". */
const char *image_kind_name(enum image_kind kind);
/* The last component of the path; borrowed. */
const char *image_name(const struct image *image);
/* The vaddr of file offset @off: by the segment that holds it, or @off itself where the image has
 * no readable file. False if there are segments and none holds it. */
bool image_vaddr_of_off(const struct image *image, uint64_t off, uint64_t *ret_vaddr);

/* What is taken from a pc in a mapping of @image to get its vaddr: the mapping is @length bytes at
 * @start, from file offset @off on. By the executable segment that it holds a part of. False if
 * there is none. */
bool image_bias(const struct image *image, uint64_t start, uint64_t length, uint64_t off,
		uint64_t *ret_bias);
/* Whether the opened file is as it was when the image was made: not written to since. */
bool image_unchanged(const struct image *image);

/* One place in some program. A pc is resolved to a place while its mapping is known, a language
 * runtime's frame while the process lives. Borrows or owns a reference as its holder says. For
 * IMAGE_FILE and IMAGE_VDSO @vaddr is the ELF virtual address; enum image_kind has the others. */
struct frame {
	struct image *image;
	uint64_t vaddr;
};

#endif

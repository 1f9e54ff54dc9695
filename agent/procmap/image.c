// SPDX-License-Identifier: Apache-2.0
#include "procmap/image.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/nsec.h"

/* Bytes of a vDSO: 4 to 12 KiB in today's kernels. A larger one is not read. There is no outcome,
 * because the kernel is trusted. Reached: its frames have no name. */
#define IMAGE_VDSO_MAX (256u << 10)

/* Until a file that has blocked a thread is read again; doubled each time up to the second. */
#define IMAGE_SLOW_NS	   (60 * NSEC_PER_SEC)
#define IMAGE_SLOW_LONG_NS (64 * IMAGE_SLOW_NS)

static void image_free(struct image *image)
{
	if (!image)
		return;
	if (image->opening) {
		image_unref(image->opening->opened);
		image_unref(image->opening->guess);
	}
	free(image->opening);
	elffile_free(image->file);
	close_fdp(&image->perf_map);
	close_fdp(&image->jitdump);
	free(image->bytes);
	if (!image->places) { /* else the last place has the names */
		free((char *)image->function.name);
		free((char *)image->function.file);
	}
	for (size_t i = 0; image->places && i < image->n_places; i++)
		image_unref(image->places[i].image);
	free(image->places);
	free(image->path);
	free(image);
}

DEFINE_CLEANUP(struct image *, image_freep, image_free);

struct image *image_ref(struct image *image)
{
	__atomic_add_fetch(&image->refs, 1, __ATOMIC_RELAXED);
	return image;
}

struct image *image_unref(struct image *image)
{
	if (image && __atomic_sub_fetch(&image->refs, 1, __ATOMIC_ACQ_REL) == 0)
		image_free(image);
	return NULL;
}

void image_set_slow(struct image *image)
{
	unsigned int n = __atomic_fetch_add(&image->n_slow, 1, __ATOMIC_RELAXED);
	uint64_t wait_ns = n < 6 ? IMAGE_SLOW_NS << n : IMAGE_SLOW_LONG_NS;

	__atomic_store_n(&image->slow_until_ns, nsec_monotonic() + wait_ns, __ATOMIC_RELAXED);
}

bool image_is_slow(const struct image *image)
{
	uint64_t until_ns = __atomic_load_n(&image->slow_until_ns, __ATOMIC_RELAXED);

	return until_ns && nsec_monotonic() < until_ns;
}

const char *image_kind_name(enum image_kind kind)
{
	static const char *const names[IMAGE_KIND_MAX] = {
		[IMAGE_FILE] = "file",	   [IMAGE_VDSO] = "vdso",	[IMAGE_KERNEL] = "kernel",
		[IMAGE_ANON] = "anon",	   [IMAGE_UNKNOWN] = "unknown", [IMAGE_RUNTIME] = "runtime",
		[IMAGE_BROKEN] = "broken",
	};

	return names[kind];
}

const char *image_name(const struct image *image)
{
	const char *slash = strrchr(image->path, '/');

	return slash && slash[1] ? slash + 1 : image->path;
}

bool image_vaddr_of_off(const struct image *image, uint64_t off, uint64_t *ret_vaddr)
{
	if (image->file)
		return elffile_vaddr_of_off(image->file, off, ret_vaddr);
	*ret_vaddr = off;
	return true;
}

/* Whether two ranges, each given by start and length, overlap. */
static bool overlap(uint64_t a, uint64_t n_a, uint64_t b, uint64_t n_b)
{
	return a < b ? b - a < n_a : a - b < n_b;
}

bool image_bias(const struct image *image, uint64_t start, uint64_t length, uint64_t off,
		uint64_t *ret_bias)
{
	const struct elffile_segment *segments;
	size_t n;

	if (!image->file)
		return false;
	segments = elffile_segments(image->file, &n);
	for (size_t i = 0; i < n; i++) {
		const struct elffile_segment *s = &segments[i];

		if (!(s->flags & PF_X) || !overlap(off, length, s->off, s->filesz))
			continue;
		*ret_bias = start - off - (s->vaddr - s->off); /* modulo 2^64, as pcs are */
		return true;
	}
	return false;
}

void image_set_checked(struct image *image, uint64_t at_ns)
{
	__atomic_store_n(&image->checked_ns, at_ns, __ATOMIC_RELAXED);
}

bool image_checked_since(const struct image *image, uint64_t since_ns)
{
	uint64_t at_ns = __atomic_load_n(&image->checked_ns, __ATOMIC_RELAXED);

	return at_ns && at_ns >= since_ns;
}

enum image_change image_change(struct image *image)
{
	const uint64_t at_ns = nsec_boot();
	struct file_id now;
	struct stat st;

	if (!image->file || elffile_stat(image->file, &st))
		return IMAGE_WRITTEN;
	now = file_id_of_stat(&st);
	if (now.size != image->id.size || now.mtime_ns != image->id.mtime_ns)
		return IMAGE_WRITTEN;
	if (now.ctime_ns != image->id.ctime_ns)
		return IMAGE_TOUCHED;
	image_set_checked(image, at_ns);
	return IMAGE_SAME;
}

static bool has_segments_of(const struct elffile *a, const struct elffile *b)
{
	size_t n_a, n_b;
	const struct elffile_segment *in_a = elffile_segments(a, &n_a);
	const struct elffile_segment *in_b = elffile_segments(b, &n_b);

	return n_a == n_b && memcmp(in_a, in_b, n_a * sizeof(*in_a)) == 0;
}

bool image_has_content(struct image *image)
{
	_cleanup_(elffile_freep) struct elffile *now = NULL;
	char build_id[ELFFILE_BUILD_ID_TEXT];
	int fd;

	if (image->kind != IMAGE_FILE || !image->file || image_change(image) == IMAGE_SAME)
		return true;
	fd = fcntl(elffile_fd(image->file), F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return false;
	if (elffile_open(fd, &now)) {
		close(fd);
		return false;
	}
	elffile_build_id_text(now, build_id);
	if (build_id[0] || image->build_id[0])
		return strcmp(build_id, image->build_id) == 0;
	return elffile_size(now) == elffile_size(image->file) && has_segments_of(now, image->file);
}

int image_new(enum image_kind kind, const char *path, struct image **ret)
{
	_cleanup_(image_freep) struct image *image = calloc(1, sizeof(*image));

	if (!image)
		return -ENOMEM;
	image->kind = kind;
	image->refs = 1;
	image->perf_map = image->jitdump = -1;
	image->path = strdup(path);
	if (!image->path)
		return -ENOMEM;
	*ret = take_ptr(image);
	return 0;
}

int image_new_function(enum image_kind kind, const char *path,
		       const struct image_function *function, struct image **ret)
{
	_cleanup_(image_freep) struct image *image = NULL;
	int r = image_new(kind, path, &image);

	if (r)
		return r;
	image->function.start_line = function->start_line;
	image->function.name = strdup(function->name);
	image->function.file = strdup(function->file);
	if (!image->function.name || !image->function.file)
		return -ENOMEM;
	*ret = take_ptr(image);
	return 0;
}

int image_new_inlined(const struct frame *places, size_t n, struct image **ret)
{
	const struct image *outermost = places[n - 1].image;
	_cleanup_(image_freep) struct image *image = NULL;
	int r = image_new(IMAGE_RUNTIME, outermost->path, &image);

	if (r)
		return r;
	image->places = calloc(n, sizeof(*image->places));
	if (!image->places)
		return -ENOMEM;
	image->function = outermost->function;
	for (; image->n_places < n; image->n_places++) {
		const struct frame *place = &places[image->n_places];

		image->places[image->n_places] =
			(struct frame){image_ref(place->image), place->vaddr};
	}
	*ret = take_ptr(image);
	return 0;
}

int image_new_opening(const char *path, uint64_t start, uint64_t offset, struct image **ret)
{
	_cleanup_(image_freep) struct image *image = NULL;
	int r = image_new(IMAGE_FILE, path, &image);

	if (r)
		return r;
	image->opening = calloc(1, sizeof(*image->opening));
	if (!image->opening)
		return -ENOMEM;
	image->opening->start = start;
	image->opening->offset = offset;
	*ret = take_ptr(image);
	return 0;
}

struct image *image_to_unwind(struct image *image)
{
	return image->opening ? image->opening->guess : image;
}

void image_set_opened(struct image *image, struct image *opened)
{
	image->opening->state = IMAGE_OPENED;
	__atomic_store_n(&image->opening->opened, opened, __ATOMIC_RELEASE);
}

/* The first descriptor stays. */
static void set_once(int *to, int fd)
{
	int none = -1;

	if (!__atomic_compare_exchange_n(to, &none, fd, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		close(fd);
}

void image_set_perf_map(struct image *image, int fd)
{
	set_once(&image->perf_map, fd);
}

void image_set_jitdump(struct image *image, int fd)
{
	set_once(&image->jitdump, fd);
}

int image_jitdump(const struct image *image)
{
	return __atomic_load_n(&image->jitdump, __ATOMIC_ACQUIRE);
}

int image_perf_map(const struct image *image)
{
	return __atomic_load_n(&image->perf_map, __ATOMIC_ACQUIRE);
}

void image_leave_open(struct image *image)
{
	__atomic_store_n(&image->perf_map, -1, __ATOMIC_RELEASE);
	__atomic_store_n(&image->jitdump, -1, __ATOMIC_RELEASE);
	if (image->file)
		elffile_leave_open(image->file);
}

int image_new_file(int fd, const char *path, struct image **ret, int *ret_elf)
{
	_cleanup_(image_freep) struct image *image = NULL;
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	r = image_new(IMAGE_FILE, path, &image);
	if (r < 0)
		return r;
	image->id = file_id_of_stat(&st);
	r = elffile_open(fd, &image->file);
	if (r == -ENOMEM)
		return r;
	if (r) { /* an I/O error counts as the file's: its disk may be gone */
		image->fault = r == ELFFILE_MALFORMED || r == ELFFILE_TRUNCATED ? IMAGE_TRUNCATED
										: IMAGE_ODD_FILE;
		close(fd);
	} else {
		elffile_build_id_text(image->file, image->build_id);
	}
	*ret_elf = r;
	*ret = take_ptr(image);
	return 0;
}

/* The kernel's image ends with its section headers. 0 if unusable. */
static size_t vdso_size(const Elf64_Ehdr *eh)
{
	uint64_t size;

	if (!eh || memcmp(eh->e_ident, ELFMAG, SELFMAG) != 0 || eh->e_ident[EI_CLASS] != ELFCLASS64)
		return 0;
	size = eh->e_shoff + (uint64_t)eh->e_shnum * sizeof(Elf64_Shdr);
	return size <= IMAGE_VDSO_MAX ? (size_t)size : 0;
}

int image_new_vdso(struct image **ret)
{
	_cleanup_(image_freep) struct image *image = NULL;
	const void *from = (const void *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
	size_t n = vdso_size(from);
	int r = image_new(IMAGE_VDSO, "[vdso]", &image);

	if (r < 0)
		return r;
	if (n) {
		image->bytes = malloc(n);
		if (!image->bytes)
			return -ENOMEM;
		memcpy(image->bytes, from, n);
		r = elffile_open_memory(image->bytes, n, &image->file);
		if (r < 0)
			return r;
		if (!r)
			elffile_build_id_text(image->file, image->build_id);
	}
	*ret = take_ptr(image);
	return 0;
}

struct frame frame_settle(const struct frame *frame)
{
	const struct image_opening *opening = frame->image->opening;
	struct frame settled = *frame;
	struct image *opened;
	uint64_t off;

	if (!opening)
		return settled;
	off = frame->vaddr - opening->start + opening->offset;
	opened = __atomic_load_n(&opening->opened, __ATOMIC_ACQUIRE);
	if (opened && opened->kind != IMAGE_FILE) {
		settled.image = opened;
		settled.vaddr = opened->kind == IMAGE_UNKNOWN ? 0 : frame->vaddr;
	} else if (opened && image_vaddr_of_off(opened, off, &settled.vaddr)) {
		settled.image = opened;
	} else {
		settled.vaddr = off;
	}
	return settled;
}

// SPDX-License-Identifier: Apache-2.0
/* The text of /proc/PID/maps, up to a NUL, and the process's memory behind it. */
#include "fuzz/fuzz.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/root.h"
#include "elf/elffile.h"
#include "goheap/goruntime.h"
#include "goheap/gounpacked.h"

static const char *const names[] = {"7/stat", "7/maps", "7/mem"};

static void put(const struct root *root, const char *name, const void *data, size_t n)
{
	int fd = openat(root->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, data, n) != (ssize_t)n)
		abort();
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char stat[] = "7 (a) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 55 0 0 0\n";
	const struct pid_id id = {.start_ticks = 55, .pid = 7};
	const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
	size_t n = nul ? (size_t)(nul - data) : size;
	char dir[] = "/tmp/podprof-fuzz-XXXXXX";
	static struct goruntime_file found;
	struct elffile *file;
	struct root root;

	if (!mkdtemp(dir) || root_open(dir, &root) || mkdirat(root.fd, "7", 0700))
		abort();
	put(&root, names[0], stat, sizeof(stat) - 1);
	put(&root, names[1], data, n);
	put(&root, names[2], data + n, size - n);
	if (gounpacked_open(&root, &id, EM_X86_64, &file) == 0) {
		(void)goruntime_file_read(file, &found);
		elffile_free(file);
	}
	for (size_t i = 0; i < 3; i++)
		unlinkat(root.fd, names[i], 0);
	unlinkat(root.fd, "7", AT_REMOVEDIR);
	rmdir(dir);
	root_deinit(&root);
	return 0;
}

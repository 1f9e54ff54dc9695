// SPDX-License-Identifier: Apache-2.0
/* An ELF core, whose files are looked for in an empty directory, and its addresses resolved. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/root.h"
#include "goheap/gocore.h"
#include "goheap/goruntimes.h"
#include "procmap/image.h"

/* Of the input, looked at as addresses. */
#define PC_BYTES 1024

/* The words include the program headers and the addresses of the mappings. */
static void look(struct gocore *core, const uint8_t *data, size_t size)
{
	static struct goruntimes found;
	struct frame frame;
	uint64_t pc;

	for (size_t i = 0; i + sizeof(pc) <= size && i < PC_BYTES; i += sizeof(pc)) {
		memcpy(&pc, data + i, sizeof(pc));
		if (gocore_resolve(core, pc, &frame) == 0)
			image_unref(frame.image);
	}
	(void)gocore_runtimes(core, &found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct root root;
	struct gocore_opts opts = {.sysroot = &root};
	struct gocore *core;

	/* with directories only */
	if (root_open("/proc/self/task", &root))
		return 0;
	opts.fd = memfd_create("core", MFD_CLOEXEC);
	if (opts.fd >= 0 && write(opts.fd, data, size) == (ssize_t)size &&
	    gocore_open(&opts, &core) == 0) {
		look(core, data, size);
		gocore_free(core);
	}
	if (opts.fd >= 0)
		close(opts.fd);
	root_deinit(&root);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* main() that feeds every file of the given directories to the linked fuzzer, so the corpus is an
 * ordinary test. */
#include "fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/root.h"

#define REPLAY_INPUT_MAX (64u << 20)

static int replay_file(const struct root *dir, const char *name)
{
	_cleanup_(buf_deinit) struct buf input = BUF_INIT(REPLAY_INPUT_MAX);
	uint8_t *exact;
	int r = root_read(dir, name, &input);

	if (r) {
		fprintf(stderr, "replay: cannot read %s (%d)\n", name, r);
		return -1;
	}
	/* a copy of exactly this size, so ASan sees one byte too many */
	exact = malloc(input.len ? input.len : 1);
	if (!exact)
		return -1;
	for (size_t i = 0; i < input.len; i++)
		exact[i] = (uint8_t)input.data[i];
	LLVMFuzzerTestOneInput(exact, input.len);
	free(exact);
	return 0;
}

static int replay_dir(const char *path)
{
	_cleanup_(root_deinit) struct root root = ROOT_INIT;
	_cleanup_(closedirp) DIR *dir = opendir(path);
	struct dirent *entry;
	int n = 0;

	if (!dir || root_open(path, &root)) {
		fprintf(stderr, "replay: cannot open %s\n", path);
		return -1;
	}
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		if (replay_file(&root, entry->d_name))
			return -1;
		n++;
	}
	return n;
}

int main(int argc, char **argv)
{
	int total = 0;

	for (int i = 1; i < argc; i++) {
		int n = replay_dir(argv[i]);

		if (n < 0)
			return 1;
		total += n;
	}
	printf("%d inputs\n", total);
	return total ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * A C program with a Go library. The program loads the library NAME.so in the same folder (NAME is
 * the program's name), and runs the Go program inside with the same arguments. GOHOST_ALSO names a
 * second library with arguments, separated by spaces; this library runs first, on a thread of its
 * own.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct program {
	void (*run)(char *args);
	char *args;
};

static void load(const char *path, struct program *p)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (library)
		*(void **)&p->run = dlsym(library, "goMain");
	if (!p->run) {
		fprintf(stderr, "library: %s\n", dlerror());
		exit(1);
	}
}

static void *run(void *arg)
{
	struct program *p = arg;

	p->run(p->args);
	return NULL;
}

static void run_also(char *what)
{
	static struct program also;
	char *path = strtok(what, " ");
	pthread_t thread;

	load(path, &also);
	also.args = strtok(NULL, "");
	if (pthread_create(&thread, NULL, run, &also) != 0)
		exit(1);
}

int main(int argc, char **argv)
{
	static char self[4096], args[4096];
	struct program p = {.args = args};
	char *also = getenv("GOHOST_ALSO");
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 4);

	if (n < 0)
		return 1;
	for (int i = 1; i < argc; i++) {
		strcat(args, argv[i]);
		strcat(args, " ");
	}
	if (also)
		run_also(strdup(also));
	load(strcat(self, ".so"), &p);
	run(&p);
	return 0;
}

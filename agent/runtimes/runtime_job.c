// SPDX-License-Identifier: Apache-2.0
#include "runtimes/runtime_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "base/share.h"
#include "procmap/address_space.h"
#include "procmap/memory.h"
#include "procmap/memory_cache.h"
#include "runtimes/runtime_files.h"
#include "runtimes/runtime_hung.h"
#include "runtimes/runtime_reader.h"

/* Nanoseconds of one job: a process can make each read slow, and others wait behind it. Reached:
 * the next job reads the others. */
#define RUNTIME_JOB_NS NSEC_PER_SEC

struct runtime_job *runtime_job_new(const struct runtime_reader_kind *kind,
				    struct runtime_hung *hung, const struct runtime_process *p)
{
	struct runtime_job *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	job->kind = kind;
	job->key = p->key;
	job->pid = p->pid;
	job->owner = p->owner->id;
	job->hung = runtime_hung_ref(hung);
	return job;
}

void runtime_job_free(struct runtime_job *job)
{
	for (size_t i = 0; i < job->n_files; i++)
		image_unref(job->files[i]);
	for (size_t i = 0; i < job->n; i++)
		runtime_value_free(job->kind, job->functions[i].value);
	free(job->files);
	free(job->functions);
	free(job->target);
	free(job->probed);
	runtime_hung_unref(job->hung);
	free(job);
}

void runtime_job_drop(struct work *work)
{
	struct runtime_job *job = container_of(work, struct runtime_job, work);

	runtime_hung_put(job->hung, job->hung_slot);
	runtime_files_free(job->searched);
	runtime_job_free(job);
}

/* Puts the files that were looked into, in vain, first. Not all of a process's: the search has
 * ceilings, files cannot always be opened, and a mapping may be gone by now. */
static void find_lacking(struct runtime_job *job)
{
	for (size_t i = 0; i < job->n_files; i++) {
		struct image *file = job->files[i];

		if (!runtime_files_lack(job->searched, &file->id))
			continue;
		job->files[i] = job->files[job->n_lacking];
		job->files[job->n_lacking++] = file;
	}
}

/* Copies what is known of the first file with the runtime. */
static void find_probed(struct runtime_job *job)
{
	for (size_t i = 0; i < job->n_files && !job->probed; i++) {
		const void *probed = runtime_files_image(job->searched, &job->files[i]->id);

		if (!probed)
			continue;
		job->found = job->files[i]->id;
		job->probed = malloc(job->kind->probe->bytes);
		if (job->probed)
			memcpy(job->probed, probed, job->kind->probe->bytes);
	}
}

void runtime_job_begin(struct work *work)
{
	struct runtime_job *job = container_of(work, struct runtime_job, work);

	job->searched = *job->files_now;
}

void runtime_job_probe(struct work *work)
{
	struct runtime_job *job = container_of(work, struct runtime_job, work);

	job->is_refused = runtime_hung_refuses(job->hung, job->owner);
	if (job->is_refused)
		return;
	if (!job->searched) {
		job->outcome = job->kind->probe->gone; /* at the end */
		return;
	}
	/* most processes have no runtime, and a browser has 100 files: 10 ms to open them again */
	if (job->is_all && runtime_files_examine(job->searched, job->files, job->n_files)) {
		job->outcome = RUNTIME_FILES_ABSENT;
		find_lacking(job);
		return;
	}
	/* in all that is mapped: some files of the process may not have been open when the job was
	 * made */
	job->outcome = job->kind->find(job->searched, runtime_hung_proc(job->hung), &job->pid,
				       job->target);
	if (job->outcome == job->kind->probe->gone &&
	    runtime_files_examine(job->searched, job->files, job->n_files))
		job->outcome = RUNTIME_FILES_ABSENT;
	if (job->outcome == RUNTIME_FILES_ABSENT)
		find_lacking(job);
	else if (job->kind->exe)
		find_probed(job);
}

/* An outcome of the reading, with the function in *@ret. */
static int read_one(const struct runtime_job *job, struct memory *m,
		    const struct runtime_function_key *key, void **ret)
{
	_cleanup_(freep) void *value = calloc(1, job->kind->function_bytes);
	int result;

	if (!value)
		return -ENOMEM;
	m->end_calls = m->n_calls + RUNTIME_FUNCTION_READS_MAX;
	result = job->kind->read(m, job->target, key->words, value);
	if (!result)
		*ret = take_ptr(value);
	return result;
}

static bool is_proved(struct memory *m, const struct runtime_proof *proof)
{
	uint64_t word;

	m->end_calls = m->n_calls + RUNTIME_FUNCTION_READS_MAX;
	for (size_t i = 0; i < proof->n; i++)
		if (memory_read(m, proof->words[i].at, &word, sizeof(word)) ||
		    word != proof->words[i].word)
			return false;
	return proof->n;
}

void runtime_job_read(struct work *work)
{
	struct runtime_job *job = container_of(work, struct runtime_job, work);
	const uint64_t end_ns = nsec_monotonic() + RUNTIME_JOB_NS;
	struct process_memory memory = {.fd = -1};
	_cleanup_(freep) struct memory_cache *cache = NULL;
	struct memory *m = &memory.memory;

	job->is_refused = runtime_hung_refuses(job->hung, job->owner);
	if (job->is_refused)
		return;
	/* the check at the end is for all reads */
	job->outcome = process_memory_open(&memory, runtime_hung_proc(job->hung), &job->pid,
					   runtime_hung_proc_is_ours(job->hung));
	if (job->kind->is_cached)
		cache = malloc(sizeof(*cache));
	if (cache) { /* without memory for it, each read takes a call */
		memory_cache_init(cache, m);
		m = &cache->memory;
	}
	while (job->n_read < job->n && (!job->n_read || nsec_monotonic() < end_ns)) {
		struct runtime_named *f = &job->functions[job->n_read++];

		f->is_proved = !job->outcome && is_proved(m, &f->proof);
		if (!f->is_proved)
			f->outcome = job->outcome ? job->kind->probe->gone
						  : read_one(job, m, &f->key, &f->value);
		work_alive(work);
	}
	if (!job->outcome)
		job->outcome = memory_check(&memory.memory);
	process_memory_deinit(&memory);
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PPROF_PPROF_H
#define PODPROF_PPROF_PPROF_H

/*
 * A builder of one profile (proto/profile.proto). Strings, mappings, functions and locations are
 * entered once and referred to by number. Numbers start at 1; 0 means "none" where permitted.
 * Strings are copied; bytes that are not UTF-8 become '?'.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct pprof;
struct pprof_tables;

struct pprof_type {
	const char *type;
	const char *unit;
};

/* Values of one written sample. Reached: -. */
#define PPROF_VALUES_MAX 4

/* Pyroscope's default limits: samples of a profile, and bytes of a message before compression. Used
 * unless pprof_opts has other values. */
#define PPROF_SAMPLES_DEFAULT 16000
#define PPROF_BYTES_DEFAULT   (4u << 20)
/* The maximum for pprof_opts: some 200 MB of the builder's memory. Reached: `PPROF_FULL`, counted
 * by the caller. */
#define PPROF_SAMPLES_MAX     (1u << 20)
/* Bytes a builder may be asked to hold. Reached: `PPROF_FULL`, counted by the caller. */
#define PPROF_BYTES_MAX	      (64u << 20)
/* Frames of a stack; Pyroscope cuts at 1000. Reached: `PPROF_FULL`, counted by the caller. */
#define PPROF_DEPTH_MAX	      1024
/* Functions inlined at one address. Reached: `PPROF_FULL`, counted by the caller. */
#define PPROF_LINES_MAX	      256
/* Labels of one sample. Reached: `PPROF_FULL`, counted by the caller. */
#define PPROF_LABELS_MAX      64
/* Bytes of one string, Pyroscope's ceiling. Reached: cut at a character. */
#define PPROF_STRING_MAX      65535

/* The function of the sample of pprof_rest(). */
#define PPROF_REST_NAME	 "[over the limit]"
/* Bytes of the message kept for this sample and for comments. Reached: `PPROF_FULL`. */
#define PPROF_REST_BYTES 1024u

struct pprof_opts {
	struct pprof_type types[PPROF_VALUES_MAX]; /* of each sample's values */
	size_t n_types;
	struct pprof_type period_type; /* required: Pyroscope reads the type unchecked */
	int64_t period;
	const char *default_type; /* or NULL: the last */
	const char *doc_url;	  /* address of the profile's documentation; NULL or "": none */
	int64_t time_ns;	  /* wall clock, start of the window */
	int64_t duration_ns;
	bool without_zeros; /* leave out samples whose values have added up to 0 */
	bool with_rest;	    /* keep room for pprof_rest() */
	size_t max_samples; /* 0: PPROF_SAMPLES_DEFAULT */
	size_t max_bytes;   /* of the message before compression; 0: PPROF_BYTES_DEFAULT */
	bool for_disk;	    /* no compression of a message that fits into a block of a disk */
};

struct pprof_mapping {
	uint64_t start; /* addresses below are in [start, limit) */
	uint64_t limit;
	uint64_t offset; /* of start in the file */
	const char *path;
	const char *build_id; /* hex or "" */
	bool has_functions;
	bool has_filenames;
	bool has_line_numbers;
	bool has_inline_frames;
};

struct pprof_line {
	uint32_t function;
	uint32_t column; /* 0: not known */
	int64_t line;
};

struct pprof_label {
	const char *key;
	const char *str; /* or NULL, and then: */
	int64_t num;
	const char *unit; /* or NULL */
};

enum pprof_outcome {
	PPROF_OK = 0,
	PPROF_FULL,	 /* above a ceiling: the caller counts the omitted part */
	PPROF_MALFORMED, /* reading: not gzip, not the message, or an index out of range */
	PPROF_OUTCOME_MAX,
};

/* 0; -EINVAL without a type of values or a period type; PPROF_FULL, -ENOMEM. */
int pprof_new(const struct pprof_opts *opts, struct pprof **ret);
void pprof_free(struct pprof *p);

/* Each: 0 and *@ret, PPROF_FULL, -ENOMEM, and -EINVAL for an unknown number. Equal arguments give
 * the same number. After a failure nothing in the profile refers to the new row. */
int pprof_string(struct pprof *p, const char *s, uint32_t *ret); /* NULL and "" are 0 */
int pprof_mapping(struct pprof *p, const struct pprof_mapping *mapping, uint32_t *ret);
int pprof_function(struct pprof *p, const char *name, const char *system_name, const char *file,
		   int64_t start_line, uint32_t *ret);
/* @lines innermost first, the last is the function the others are inlined into. */
int pprof_location(struct pprof *p, uint32_t mapping, uint64_t address,
		   const struct pprof_line *lines, size_t n_lines, uint32_t *ret);
/* @locations: leaf first. Samples with equal locations and labels are added up; the sum saturates.
 */
int pprof_sample(struct pprof *p, const uint32_t *locations, size_t n_locations,
		 const int64_t *values, const struct pprof_label *labels, size_t n_labels);
/* The end of the samples of a profile with_rest, once: the values of all samples that had no room,
 * as a sample with the frame PPROF_REST_NAME; without values, none. The room that was kept for this
 * sample is free for comments afterwards. 0, -ENOMEM. */
int pprof_rest(struct pprof *p, const int64_t *values);
/* Equal comments are one. */
int pprof_comment(struct pprof *p, const char *comment);

/* "podprof VERSION", a comment for each profile. */
extern const char pprof_producer[];

/* Size of the message before compression, at most. */
size_t pprof_bytes(const struct pprof *p);
/* The profile built so far; borrowed. */
const struct pprof_tables *pprof_tables(const struct pprof *p);
/* Append the gzip-compressed message. 0, PPROF_FULL (of @ret), -ENOMEM. */
int pprof_encode(const struct pprof *p, struct buf *ret);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_DESTINATION_H
#define PODPROF_EXPORT_DESTINATION_H

/* Destinations of profiles: the kinds of backends, and a destination in the user's spelling,
 * "pyroscope=URL[,key=value...]". */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/secret.h"
#include "export/profile.h"

struct http_reply;
struct strview;

/* Headers added by a kind, with the final NULL. */
#define DESTINATION_HEADERS 4

/* Headers added by the user to one destination. Reached: wrong usage. */
#define DESTINATION_OWN_HEADERS_MAX 8

/* The meaning of a reply for the batch. */
enum destination_verdict {
	DESTINATION_SENT,
	DESTINATION_RETRY,	   /* the same request may succeed later */
	DESTINATION_RETRY_SMALLER, /* backpressure: a smaller request may succeed later */
	DESTINATION_SPLIT,	   /* too large: retry a smaller batch, drop a single profile */
	DESTINATION_DENIED,	   /* dropped: the credentials */
	DESTINATION_REFUSED,	   /* dropped: the same request is refused again */
	DESTINATION_REFUSED_PART,  /* a profile of the batch is refused; the reply names none */
	DESTINATION_REFUSED_MAYBE, /* the same, but a part may be stored: ended, not searched */
};

/* What a failed request left of one profile of the batch. */
enum destination_fate {
	DESTINATION_FATE_STORED,     /* at least in part */
	DESTINATION_FATE_NOT_STORED, /* certainly, and may be sent again */
	DESTINATION_FATE_LOST,	     /* refused, or perhaps stored: not sent again */
};

/**
 * struct destination_limits - a backend's default limits. No limit: the largest value of the
 * member's type
 * @profile:     samples and bytes of one profile
 * @profiles:    number in one request; each profile is one series
 * @request:     bytes of compressed pprof in one request; a single profile may have more; 0: the
 *               sender's own limit
 * @raw:         bytes of pprof before compression in all requests under way; a single profile may
 *               have more; 0: no limit
 * @labels:      number of labels of one profile, without the kind's own labels; at least LABELS_MAX
 * @label_bytes: bytes of one label's value; at least LABELS_VALUE_MAX
 * @age_ns:      largest age of a profile at the arrival, from the profile's start
 * @ahead_ns:    largest time by which the profile's start may be ahead of the backend's own clock
 */
struct destination_limits {
	struct profile_limits profile;
	size_t profiles;
	uint64_t request;
	uint64_t raw;
	size_t labels;
	size_t label_bytes;
	uint64_t age_ns;
	uint64_t ahead_ns;
};

/* For .limits of a backend without own limits. The user of the macro adds .profiles and .request.
 */
#define DESTINATION_NO_LIMITS                                                         \
	.profile = {SIZE_MAX, SIZE_MAX}, .labels = SIZE_MAX, .label_bytes = SIZE_MAX, \
	.age_ns = UINT64_MAX, .ahead_ns = UINT64_MAX

/* For .types of a backend that forms a type's name from this name and the types inside the pprof,
 * as Go programs and Grafana's and Parca's agents name their profiles. */
#define DESTINATION_GO_NAMES                                                                       \
	[PROFILE_CPU] = "process_cpu", [PROFILE_OFF_CPU] = "offcpu", [PROFILE_GO_HEAP] = "memory", \
	[PROFILE_GO_MUTEX] = "mutex", [PROFILE_GO_BLOCK] = "block"

/**
 * struct destination_profile - one profile for a kind's encoder; borrowed
 * @pprof: gzip, cumulative or with differences, as the kind requires
 * @id:    a UUID, the same for each attempt to send this profile
 * @part:  number of the request, from 0, if the kind needs several requests for one profile
 */
struct destination_profile {
	const struct profile *profile;
	const void *pprof;
	size_t pprof_len;
	const char *id;
	unsigned int part;
};

/**
 * struct destination_request - an encoded batch
 * @body:  never NULL
 * @query: the end of the address, "?name=value..." and percent-encoded; NULL for none
 * @ends:  for each profile of the batch, the number of the backend's own profiles in the request up
 *         to this profile's last; NULL unless the kind has @fates
 */
struct destination_request {
	char *body;
	size_t body_len;
	char *query;
	size_t *ends;
};
void destination_request_deinit(struct destination_request *r);

/**
 * struct destination_kind - the description of one kind of backend
 * @name:     in --destination and in metrics
 * @title:    the product's name, for people
 * @path:     appended to the user's URL
 * @folder:   profiles go to a folder of the node: the user gives a path instead of a URL, and there
 *            are no requests: @headers, @encode and @verdict are absent
 * @headers:  "Name: value" for each request: content type, content encoding, protocol; NULL ends
 * @token_header: name of the header with the token; NULL: "Authorization: Bearer"
 * @tenant_header: name of the header with the tenant; NULL: the backend has no tenants
 * @types:    the backend's name for each kind of profile; NULL: profiles of the kind are not sent
 * @parts:    number of requests for one profile, by kind of profile; each request is an item of the
 *            outbox; 0: one request
 * @symbolizes: the server can name locations without a line by the mapping's build id
 * @splits:   the backend makes a series of each value of a sample's label, or ignores these:
 * samples go without the name of their thread, unless the user wants it
 * @whole:    for its symbolizer an address is that of the file only if the mapping is the whole
 *            address space
 * @files:    the backend takes program files and names frames by them (upload.h): the kind for
 * these calls; NULL: it takes none
 * @deltas:   the backend wants alloc values of one window (profile.pprof_delta), not cumulative
 *            values
 * @encode:   makes one request of @n profiles, 0 to limits.profiles. The request of 0 profiles is
 *            the doctor's probe. The caller owns @ret. 0, -ENOMEM, or -EBADMSG for a profile
 *            that cannot be encoded.
 * @verdict:  evaluates a reply, or status 0 for none
 * @rejected: number of profiles that the reply to an accepted request refuses. @ret_message: the
 *            reason, text from the backend; borrows the reply. NULL: the backend has no such
 *            replies.
 * @fates:    reads a reply that is no success but names the profiles concerned. @ret: the fate of
 *            each of the @n profiles. @ret_rejected: the backend's own profiles that are missing of
 *            stored profiles. False if the reply names none. NULL: the backend has no such replies.
 * @probe_ok: whether the reply is the expected refusal of the probe: the backend accepts profiles,
 *            but not a request without profiles; NULL: no refusal is expected
 *
 * A kind is a constant in a file of its own and one row of destination_kinds. A protocol fits if
 * each batch is one POST: a message of series, a gRPC-web frame, one profile with parameters in the
 * address. A protocol with a session (a gRPC stream) does not fit.
 */
struct destination_kind {
	const char *name;
	const char *title;
	const char *path;
	bool folder;
	const char *headers[DESTINATION_HEADERS];
	const char *token_header;
	const char *tenant_header;
	const char *types[PROFILE_KIND_MAX];
	unsigned char parts[PROFILE_KIND_MAX];
	bool symbolizes;
	bool splits;
	bool whole;
	const struct destination_kind *files;
	bool deltas;
	struct destination_limits limits;
	int (*encode)(const struct destination_profile *profiles, size_t n,
		      struct destination_request *ret);
	enum destination_verdict (*verdict)(const struct http_reply *reply);
	uint64_t (*rejected)(const struct http_reply *reply, struct strview *ret_message);
	bool (*fates)(const struct http_reply *reply, const struct destination_request *request,
		      size_t n, enum destination_fate *ret, uint64_t *ret_rejected);
	bool (*probe_ok)(const struct http_reply *reply);
};

/* All kinds; NULL ends. */
extern const struct destination_kind *const destination_kinds[];

/* HTTP's usual reading of a status, for kinds without a reading of their own: 2xx is sent; no
 * reply, 408, 429 and 5xx are retried; 413 is split; 401 and 403 are denied; the rest is refused.
 */
enum destination_verdict destination_verdict_of_status(long status);

struct destination {
	const struct destination_kind *kind;
	char *url;  /* with the kind's path; for a folder: the path */
	char *host; /* of the URL, with an explicit port: for people and metric labels; or as @url
		     */
	uint64_t folder_bytes; /* ceiling of the files in a folder */
	bool thread_names;     /* samples keep the name of their thread */
	bool server_symbols;   /* frames without a name go without a placeholder */
	bool debuginfo;	       /* files of programs with frames without a name are uploaded */
	char *storage; /* the origin (origin.h) where the server may send them; NULL: none */
	char *user;    /* basic authentication */
	struct secret password;
	struct secret bearer;
	struct secret tenant;
	struct secret headers[DESTINATION_OWN_HEADERS_MAX]; /* "Name: value" each */
	size_t n_headers;
	char *ca_file;
	char *cert_file; /* of the client */
	char *key_file;
};

/**
 * destination_new() - parse the value of --destination
 * @ret_error: a sentence for the user with a result of 1; owned by the caller
 *
 * Examines only the text and the environment; files are read at each use.
 *
 * Return: 0; 1 for a wrong @spec; -ENOMEM.
 */
int destination_new(const char *spec, struct destination **ret, char **ret_error);
/* The same with other kinds than destination_kinds. */
int destination_new_of(const struct destination_kind *const *kinds, const char *spec,
		       struct destination **ret, char **ret_error);
void destination_free(struct destination *d);

/* The first of the destination's files that cannot be read now, and errno; NULL if all can.
 * Borrowed. */
const char *destination_unreadable_file(const struct destination *d, int *ret_errno);

/* For --help, below the heading "Destinations:". */
extern const char destination_help[];

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DOCTOR_PROBE_RESULTS_H
#define PODPROF_DOCTOR_PROBE_RESULTS_H

/* All probe results, for the checks: the result of one probe may explain another's. */

#include "doctor/kernelside.h"
#include "doctor/listener.h"
#include "doctor/network.h"
#include "doctor/node.h"
#include "doctor/reading.h"
#include "doctor/rights.h"
#include "doctor/sources.h"
#include "doctor/storedir.h"

/**
 * struct probe_results
 * @config:     the settings under test; borrowed
 * @in_cluster: the doctor runs in a pod of Kubernetes
 * @no_proc:    --proc-root cannot be opened: an enum root_outcome, or -errno. Results that depend
 *              on --proc-root are then unknown
 */
struct probe_results {
	const struct config *config;
	bool in_cluster;
	int no_proc;
	struct rights rights;
	struct kernelside kernel;
	struct node node;
	struct reading reading;
	struct sources sources;
	struct network network;
	struct listener listener;
	struct storedir storedir;
	struct storedir spooldir;
};

#endif

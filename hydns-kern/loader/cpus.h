/* SPDX-License-Identifier: GPL-2.0-only */
/* The machine's CPUs: which are online, and a visit to each. */
#ifndef HYDNS_KERN_LOADER_CPUS_H
#define HYDNS_KERN_LOADER_CPUS_H

#include <sched.h>

/* Reads the online CPUs. 0, or a negative errno: -E2BIG where one's number does not fit a cpu_set_t. */
int hydns_cpus_online(cpu_set_t *out);

/*
 * Has the calling thread run on each online CPU, one after the other, and gives it back its affinity. An XDP or tc program runs
 * with bottom halves disabled, so no thread gets its CPU before it ends: after the tour, none runs that ran when it began. On an
 * idle machine that takes a tenth of a millisecond, where membarrier() takes ten; but a thread of higher priority that keeps its
 * CPU also keeps the tour.
 *
 * 0; or a negative errno when not all of them were visited, as where a cpuset forbids it (-EINVAL), or when a visit proves
 * nothing: on a kernel with PREEMPT_RT, whose programs can be preempted (-EOPNOTSUPP).
 */
int hydns_cpus_tour(void);

#endif

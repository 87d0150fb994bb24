/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Maps that a resolver shares with the program: a BPF ring buffer of each that logs its clients' messages, an array of budgets of each
 * that limits its clients, and a set of names of each that preloads zones. The maps hydns_log_rings, hydns_budgets and hydns_names alone
 * keep them, so they outlive hydnsd.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "hydns-kern/loader/kern.h"

static void forget(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void hydns_resolver_maps_close(struct hydns_kern *k)
{
	for (__u32 i = 0; i < HYDNS_RESOLVERS; i++) {
		forget(&k->log_fd[i]);
		forget(&k->budget_fd[i]);
		forget(&k->names_fd[i]);
	}
}

/* Puts a map that was just made, or the errno that it was not, in the place of the resolver's former one, which *kept is. The kernel
 * returns from a change of outer when no program uses its former value. */
static int give(const struct bpf_map *outer, __u32 i, int fd, int *kept, int *map_fd)
{
	int err = 0;

	if (fd < 0)
		return fd;
	*map_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (*map_fd < 0 || bpf_map_update_elem(bpf_map__fd(outer), &i, &fd, BPF_ANY))
		err = -errno;
	if (err) {
		if (*map_fd >= 0)
			close(*map_fd);
		close(fd);
		return err;
	}
	forget(kept);
	*kept = fd;
	return 0;
}

int hydns_kern_log_ring_new(struct hydns_kern *k, __u32 i, __u32 octets, int *map_fd, char why[HYDNS_WHY])
{
	int err;

	if (octets < HYDNS_LOG_RING_LEAST || octets > HYDNS_LOG_RING_MOST || (octets & (octets - 1)))
		return hydns_fail(why, -EINVAL, "a log ring of %u octets: it must be a power of 2 from %u to %u", octets,
				  HYDNS_LOG_RING_LEAST, HYDNS_LOG_RING_MOST);
	err = give(k->skel->maps.hydns_log_rings, i, bpf_map_create(BPF_MAP_TYPE_RINGBUF, "hydns_log_ring", 0, 0, octets, NULL),
		   &k->log_fd[i], map_fd);
	return err ? hydns_fail(why, err, "can't make a log ring: %s", strerror(-err)) : 0;
}

void hydns_kern_log_ring_delete(struct hydns_kern *k, __u32 i)
{
	struct hydns_log_count *zero = calloc(hydns_kern_geometry(k)->cpus, sizeof(*zero));

	bpf_map_delete_elem(bpf_map__fd(k->skel->maps.hydns_log_rings), &i);
	forget(&k->log_fd[i]);
	if (zero)
		bpf_map_update_elem(bpf_map__fd(k->skel->maps.hydns_logs), &i, zero, BPF_ANY);
	free(zero);
}

int hydns_kern_log_counts(struct hydns_kern *k, __u32 i, struct hydns_log_count *sum)
{
	return hydns_percpu_sum(bpf_map__fd(k->skel->maps.hydns_logs), hydns_kern_geometry(k)->cpus, i,
				sizeof(*sum) / sizeof(__u64), (__u64 *)sum);
}

int hydns_kern_budgets_new(struct hydns_kern *k, __u32 i, int *map_fd, char why[HYDNS_WHY])
{
	LIBBPF_OPTS(bpf_map_create_opts, o, .map_flags = BPF_F_MMAPABLE);
	int err = give(k->skel->maps.hydns_budgets, i,
		       bpf_map_create(BPF_MAP_TYPE_ARRAY, "hydns_budget", sizeof(__u32), sizeof(struct hydns_budget_bucket),
				      HYDNS_BUDGET_BUCKETS, &o), &k->budget_fd[i], map_fd);

	return err ? hydns_fail(why, err, "can't make a map of budgets: %s", strerror(-err)) : 0;
}

void hydns_kern_budgets_delete(struct hydns_kern *k, __u32 i)
{
	bpf_map_delete_elem(bpf_map__fd(k->skel->maps.hydns_budgets), &i);
	forget(&k->budget_fd[i]);
}

/* All zero, and so not open. */
int hydns_kern_names_new(struct hydns_kern *k, __u32 i, const struct hydns_names_request *q, int *map_fd, char why[HYDNS_WHY])
{
	const __u32 buckets = q->buckets, leaves = q->leaves;
	LIBBPF_OPTS(bpf_map_create_opts, o, .map_flags = BPF_F_MMAPABLE | BPF_F_INNER_MAP);
	int err;

	if (buckets < HYDNS_NAMES_BUCKETS_LEAST || buckets > HYDNS_NAMES_BUCKETS_MOST || (buckets & (buckets - 1)))
		return hydns_fail(why, -EINVAL, "a set of names of %u buckets: it must be a power of 2 from %u to %u", buckets,
				  HYDNS_NAMES_BUCKETS_LEAST, HYDNS_NAMES_BUCKETS_MOST);
	if (leaves > HYDNS_LEAVES_MOST(buckets))
		return hydns_fail(why, -EINVAL, "a table of %u leaves beside %u buckets: more than %u", leaves, buckets,
				  HYDNS_LEAVES_MOST(buckets));
	if (q->zones > HYDNS_NAMES_ZONES_MOST)
		return hydns_fail(why, -EINVAL, "a set of names of %u zones: more than %u", q->zones, HYDNS_NAMES_ZONES_MOST);
	err = give(k->skel->maps.hydns_names, i,
		   bpf_map_create(BPF_MAP_TYPE_ARRAY, "hydns_name_set", sizeof(__u32), sizeof(struct hydns_names_bucket),
				  hydns_soa_element(buckets - 1, leaves, q->zones), &o),
		   &k->names_fd[i], map_fd);
	return err ? hydns_fail(why, err, "can't make a set of names: %s", strerror(-err)) : 0;
}

void hydns_kern_names_delete(struct hydns_kern *k, __u32 i)
{
	bpf_map_delete_elem(bpf_map__fd(k->skel->maps.hydns_names), &i);
	forget(&k->names_fd[i]);
}

bool hydns_kern_has_names(struct hydns_kern *k, __u32 i)
{
	__u32 id;

	return !bpf_map_lookup_elem(bpf_map__fd(k->skel->maps.hydns_names), &i, &id);
}

void hydns_kern_limits_exist(struct hydns_kern *k, bool any)
{
	struct hydns_geometry *meta = k->mapped[HYDNS_MAPPED_META].at;

	__atomic_store_n(&meta->limits, any, __ATOMIC_RELEASE);
}

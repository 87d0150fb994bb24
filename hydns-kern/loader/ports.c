/* SPDX-License-Identifier: GPL-2.0-only */
/* Ports of queries to upstream: their range and their words. */
#include <errno.h>
#include <bpf/libbpf.h>
#include "hydns-kern/loader/kern.h"

static struct hydns_geometry *meta(const struct hydns_kern *k)
{
	return k->mapped[HYDNS_MAPPED_META].at;
}

/* The word that the program reads. */
static void tell_range(struct hydns_kern *k, __u32 range)
{
	__atomic_store_n(&k->skel->bss->hydns_upstream, range, __ATOMIC_RELAXED);
}

int hydns_ports_open(struct hydns_kern *k)
{
	tell_range(k, meta(k)->port_range);
	return hydns_map_memory(hydns_kern_ports_fd(k), true, &k->ports);
}

int hydns_kern_ports_fd(const struct hydns_kern *k)
{
	return bpf_map__fd(k->skel->maps.hydns_ports);
}

int hydns_kern_ports_range(struct hydns_kern *k, __u32 first, __u32 ports)
{
	if (first >= HYDNS_PORTS || ports >= HYDNS_PORTS || first + ports > HYDNS_PORTS)
		return -EINVAL;
	__atomic_store_n(&meta(k)->port_range, HYDNS_PORT_RANGE(first, ports), __ATOMIC_RELAXED);
	tell_range(k, HYDNS_PORT_RANGE(first, ports));
	return 0;
}

void hydns_kern_ports_seed(const struct hydns_kern *k, __u64 seed[2])
{
	seed[0] = meta(k)->tag_seed[0];
	seed[1] = meta(k)->tag_seed[1];
}

/* Another resolver may claim a word just as this one's is over: so a word is cleared only as it was read. */
void hydns_kern_ports_clear(struct hydns_kern *k, __u32 resolver)
{
	__u64 *words = k->ports.at;

	for (__u32 port = 0; port < HYDNS_PORTS; port++) {
		__u64 word = __atomic_load_n(&words[port], __ATOMIC_RELAXED);

		if (word && HYDNS_PORT_RESOLVER(word) == resolver)
			__atomic_compare_exchange_n(&words[port], &word, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	}
}

void hydns_kern_lanes_exist(struct hydns_kern *k, bool any)
{
	__atomic_store_n(&meta(k)->lanes, any, __ATOMIC_RELEASE);
}

int hydns_kern_queue_counts(struct hydns_kern *k, __u32 resolver, struct hydns_queue_count *sum)
{
	return hydns_percpu_sum(bpf_map__fd(k->skel->maps.hydns_queued), hydns_kern_geometry(k)->cpus, resolver,
				sizeof(*sum) / sizeof(__u64), (__u64 *)sum);
}

/* SPDX-License-Identifier: GPL-2.0-only */
/* Packet rings: lanes, the sockets of their threads, and resolvers' gates. */
#include <errno.h>
#include <stdlib.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "hydns-kern/loader/kern.h"

/* -- lanes --------------------------------------------------------------------------------------------- */
static int lanes_map(const struct hydns_kern *k)
{
	return bpf_map__fd(k->skel->maps.hydns_lanes);
}

static void tell_any(struct hydns_kern *k)
{
	struct hydns_lane_key key;

	hydns_kern_lanes_exist(k, !bpf_map_get_next_key(lanes_map(k), NULL, &key));
}

int hydns_kern_lane_set(struct hydns_kern *k, const struct hydns_lane_key *key, const struct hydns_lane *lane)
{
	int err;

	if (lane->number >= HYDNS_LANES || lane->threads < 1 || lane->threads > HYDNS_THREADS_MAX ||
	    lane->resolver >= HYDNS_RESOLVERS)
		return -EINVAL;
	err = bpf_map_update_elem(lanes_map(k), key, lane, BPF_ANY);
	tell_any(k);
	return err;
}

int hydns_kern_lane_delete(struct hydns_kern *k, const struct hydns_lane_key *key)
{
	int err = bpf_map_delete_elem(lanes_map(k), key);

	tell_any(k);
	return err == -ENOENT ? 0 : err;
}

/* All keys are read before the first call of fn. */
int hydns_kern_lane_each(struct hydns_kern *k,
			 void (*fn)(const struct hydns_lane_key *, const struct hydns_lane *, void *), void *arg)
{
	struct hydns_lane_key *keys = calloc(HYDNS_LANES, sizeof(*keys)), *last = NULL;
	struct hydns_lane lane;
	unsigned n = 0;

	if (!keys)
		return -ENOMEM;
	while (n < HYDNS_LANES && !bpf_map_get_next_key(lanes_map(k), last, &keys[n]))
		last = &keys[n++];
	for (unsigned i = 0; i < n; i++)
		if (!bpf_map_lookup_elem(lanes_map(k), &keys[i], &lane))
			fn(&keys[i], &lane, arg);
	free(keys);
	return 0;
}

/* -- sockets ------------------------------------------------------------------------------------------- */
int hydns_kern_ring_set(struct hydns_kern *k, __u32 number, __u32 thread, int xsk_fd)
{
	__u32 key = HYDNS_RING(number, thread);

	if (number >= HYDNS_LANES || thread >= HYDNS_THREADS_MAX)
		return -EINVAL;
	return bpf_map_update_elem(bpf_map__fd(k->skel->maps.hydns_rings), &key, &xsk_fd, BPF_ANY);
}

/* BPF_NOEXIST puts a socket where there is none alone, and then it goes again. */
bool hydns_kern_rings_open(struct hydns_kern *k, __u32 number, __u32 threads, int spare)
{
	const int rings = bpf_map__fd(k->skel->maps.hydns_rings);

	for (__u32 thread = 0; thread < threads; thread++) {
		__u32 key = HYDNS_RING(number, thread);

		if (bpf_map_update_elem(rings, &key, &spare, BPF_NOEXIST) == -EEXIST)
			return true;
		bpf_map_delete_elem(rings, &key);
	}
	return false;
}

void hydns_kern_rings_delete(struct hydns_kern *k, __u32 number)
{
	for (__u32 thread = 0; thread < HYDNS_THREADS_MAX; thread++) {
		__u32 key = HYDNS_RING(number, thread);

		bpf_map_delete_elem(bpf_map__fd(k->skel->maps.hydns_rings), &key);
	}
}

int hydns_kern_gate_set(struct hydns_kern *k, __u32 resolver, int xsk_fd)
{
	if (resolver >= HYDNS_RESOLVERS)
		return -EINVAL;
	return bpf_map_update_elem(bpf_map__fd(k->skel->maps.hydns_gates), &resolver, &xsk_fd, BPF_ANY);
}

void hydns_kern_gate_delete(struct hydns_kern *k, __u32 resolver)
{
	bpf_map_delete_elem(bpf_map__fd(k->skel->maps.hydns_gates), &resolver);
}

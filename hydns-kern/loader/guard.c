/* SPDX-License-Identifier: GPL-2.0-only */
/* The guard: its configuration, clients' cells, and rules for suffixes. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "hydns/hash.h"
#include "hydns-kern/loader/kern.h"

#define IPV4_MAPPED_BITS 96

static void set_mask(__u64 mask[2], __u32 bits)
{
	__u8 octet[16] = { 0 };

	for (__u32 i = 0; i < bits; i++)
		octet[i / 8] |= (__u8)(0x80 >> i % 8);
	memcpy(mask, octet, sizeof(octet));
}

int hydns_guard_configure(struct hydns_bpf *b, const struct hydns_loader_guard *o)
{
	struct hydns_guard_config c = { .mode = o->mode, .queries = o->queries, .action = o->action, .slip = o->slip, .exempt = o->exempt };

	b->rodata->hydns_guard_stage = o->mode != HYDNS_GUARD_OFF;
	memcpy(c.seed, (const void *)b->rodata->hydns_guard.seed, sizeof(c.seed));
	if (o->mode && !c.seed[0] && getrandom(c.seed, sizeof(c.seed), 0) != sizeof(c.seed))
		return -EIO;
	set_mask(c.mask[0], IPV4_MAPPED_BITS + o->ipv4_prefix);
	set_mask(c.mask[1], o->ipv6_prefix);
	memcpy((void *)&b->rodata->hydns_guard, &c, sizeof(c));
	return 0;
}

const struct hydns_guard_bucket *hydns_kern_guard_cells(const struct hydns_kern *k)
{
	return k->mapped[HYDNS_MAPPED_GUARD].at;
}

int hydns_kern_guard_counts(struct hydns_kern *k, __u32 resolver, struct hydns_guard_count *sum)
{
	memset(sum, 0, sizeof(*sum));
	return hydns_percpu_sum(bpf_map__fd(k->skel->maps.hydns_gd_counts), hydns_kern_geometry(k)->cpus, resolver,
				sizeof(*sum) / sizeof(__u64), (__u64 *)sum);
}

__u64 hydns_kern_guard_key(const struct hydns_kern *k, __u32 resolver, const __u8 *suffix, __u32 len)
{
	return hydns_key_hash(suffix, (__u8)len, 0, 0, (__u8)resolver, hydns_kern_geometry(k)->seed);
}

static int rules_fd(const struct hydns_kern *k)
{
	return bpf_map__fd(k->skel->maps.hydns_gd_rules);
}

int hydns_kern_guard_set(struct hydns_kern *k, __u64 key, const struct hydns_guard_rule *r)
{
	return bpf_map_update_elem(rules_fd(k), &key, r, BPF_ANY);
}

int hydns_kern_guard_get(struct hydns_kern *k, __u64 key, struct hydns_guard_rule *r)
{
	return bpf_map_lookup_elem(rules_fd(k), &key, r);
}

int hydns_kern_guard_delete(struct hydns_kern *k, __u64 key)
{
	return bpf_map_delete_elem(rules_fd(k), &key);
}

void hydns_kern_guard_labels(struct hydns_kern *k, __u32 labels)
{
	__atomic_store_n(&k->skel->bss->hydns_guard_labels, labels, __ATOMIC_RELAXED);
}

int hydns_kern_guard_clear(struct hydns_kern *k)
{
	int err = 0;
	__u64 key;

	hydns_kern_guard_labels(k, 0);
	while (!err && !bpf_map_get_next_key(rules_fd(k), NULL, &key))
		err = hydns_kern_guard_delete(k, key);
	return err;
}

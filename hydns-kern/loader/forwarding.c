/* SPDX-License-Identifier: GPL-2.0-only */
/* Telling the program what it may forward, and reading what has come back. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "hydns-kern/loader/kern.h"

/* What hydns_kern_answered_drain() hands to libbpf's callback, which is registered once. */
struct hydns_answer_reader {
	void (*fn)(const struct hydns_forward_answer *a, void *arg);
	void *arg;
	struct hydns_ring_reader ring;
};

static int read_answer(void *reader, void *data, size_t len)
{
	const struct hydns_answer_reader *r = reader;
	const struct hydns_forward_answer *a = data;

	if (len >= sizeof(*a) && len - sizeof(*a) >= a->len)
		r->fn(a, r->arg);
	return 0;
}

int hydns_answer_reader_follow(struct hydns_kern *k)
{
	return hydns_ring_follow(&k->answered->ring, k->skel->maps.hydns_answered, read_answer, k->answered);
}

int hydns_forwarding_open(struct hydns_kern *k)
{
	int err = hydns_map_memory(bpf_map__fd(k->skel->maps.hydns_forward), true, &k->forwarding);

	if (err)
		return err;
	k->answered = calloc(1, sizeof(*k->answered));
	if (!k->answered)
		return -ENOMEM;
	return hydns_answer_reader_follow(k);
}

void hydns_forwarding_close(struct hydns_kern *k)
{
	if (k->answered)
		ring_buffer__free(k->answered->ring.buffer);
	free(k->answered);
	k->answered = NULL;
	hydns_unmap_memory(&k->forwarding);
}

struct hydns_forwarding *hydns_kern_forwarding(struct hydns_kern *k, __u32 resolver)
{
	return (struct hydns_forwarding *)k->forwarding.at + resolver;
}

/* -- zones ------------------------------------------------------------------------------------------------ */
/* Hashes the name as the program does; returns how many labels it has, without the root's. */
static __u32 hash_name(const struct hydns_geometry *g, const __u8 *name, __u8 name_len, __u64 *hash)
{
	__u64 label[HYDNS_NAME_MAX / 2 + 1];
	__u32 labels = 0;

	for (__u32 at = 0; at < name_len && name[at] && labels < HYDNS_NAME_MAX / 2; at += 1U + name[at]) {
		label[labels] = HYDNS_FORWARD_LABEL(g->seed);
		for (__u32 i = 1; i <= name[at] && at + i < name_len; i++)
			label[labels] = HYDNS_FORWARD_OCTET(label[labels], (__u64)name[at + i]);
		labels++;
	}
	*hash = HYDNS_FORWARD_HASH_ROOT(g->seed);
	for (__u32 i = labels; i > 0; i--)
		*hash = HYDNS_FORWARD_NAME(*hash, label[i - 1]);
	return labels;
}

int hydns_kern_forward_zone(struct hydns_kern *k, __u32 resolver, __u32 number, const __u8 *name, __u8 name_len,
			    const struct hydns_forward_zone *zone, __u32 *labels)
{
	struct hydns_forward_zone_key key = { .number = number, .resolver = resolver };

	*labels = hash_name(hydns_kern_geometry(k), name, name_len, &key.hash);
	if (*labels > HYDNS_FORWARD_LABELS)
		return -E2BIG;
	return bpf_map_update_elem(bpf_map__fd(k->skel->maps.hydns_fwd_zones), &key, zone, BPF_ANY);
}

int hydns_kern_forward_forget(struct hydns_kern *k, __u32 resolver, __u32 keep)
{
	int fd = bpf_map__fd(k->skel->maps.hydns_fwd_zones);
	struct hydns_forward_zone_key key, next;
	bool more = !bpf_map_get_next_key(fd, NULL, &next);

	while (more) {
		key = next;
		more = !bpf_map_get_next_key(fd, &key, &next);
		if (key.resolver == resolver && (!keep || key.number != keep) && bpf_map_delete_elem(fd, &key) && errno != ENOENT)
			return -errno;
	}
	return 0;
}

/* -- requests --------------------------------------------------------------------------------------------- */
void hydns_kern_forwarded_to(struct hydns_kern *k, void (*fn)(const struct hydns_parked *p, const struct hydns_forwarded *f,
							     void *arg), void *arg)
{
	hydns_parked_reader_forwarded(k, fn, arg);
}

int hydns_kern_answered_fd(const struct hydns_kern *k)
{
	return ring_buffer__epoll_fd(k->answered->ring.buffer);
}

int hydns_kern_answered_drain(struct hydns_kern *k, void (*fn)(const struct hydns_forward_answer *a, void *arg), void *arg)
{
	k->answered->fn = fn;
	k->answered->arg = arg;
	return ring_buffer__consume(k->answered->ring.buffer);
}

static void free_port(struct hydns_kern *k, __u32 port, __u64 word)
{
	__u64 *at = (__u64 *)k->ports.at + port;

	if (port < HYDNS_PORTS)
		__atomic_compare_exchange_n(at, &word, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

void hydns_kern_forward_close(struct hydns_kern *k, __u32 resolver, __u64 key, __u32 port, __u64 word)
{
	const struct hydns_forward_question q = { .key = key, .resolver = resolver };

	free_port(k, port, word);
	hydns_kern_forward_may_ask(k, &q, 1);
}

/* The kernel stops at a question that it can't remove, because it is not there or memory is short: that one goes by itself. */
void hydns_kern_forward_may_ask(struct hydns_kern *k, const struct hydns_forward_question *q, __u32 n)
{
	int fd = bpf_map__fd(k->skel->maps.hydns_fwd_open);

	while (n) {
		__u32 done = n;
		int err = bpf_map_delete_batch(fd, q, &done, NULL);

		if (!err || done >= n)
			return;
		bpf_map_delete_elem(fd, &q[done]);
		q += done + 1;
		n -= done + 1;
	}
}

int hydns_kern_forward_close_all(struct hydns_kern *k)
{
	int fd = bpf_map__fd(k->skel->maps.hydns_fwd_open), n = 0;
	const __u64 *words = k->ports.at;
	struct hydns_forward_question q;

	for (__u32 port = 0; port < HYDNS_PORTS; port++) {
		__u64 word = __atomic_load_n(&words[port], __ATOMIC_RELAXED);

		if (word && HYDNS_PORT_DEVICE(word) == HYDNS_FORWARD_DEVICE)
			free_port(k, port, word);
	}
	for (; n <= HYDNS_FORWARD_OPEN && !bpf_map_get_next_key(fd, NULL, &q); n++)
		if (bpf_map_delete_elem(fd, &q) && errno != ENOENT)
			return -errno;
	return n;
}

__u32 hydns_kern_forward_parked(struct hydns_kern *k, __u32 resolver, __u64 key)
{
	struct hydns_forward_question q = { .key = key, .resolver = resolver };
	struct hydns_forward_open open;

	return bpf_map_lookup_elem(bpf_map__fd(k->skel->maps.hydns_fwd_open), &q, &open) ? 0 : open.parked;
}

int hydns_kern_forward_counts(struct hydns_kern *k, __u32 resolver, struct hydns_forward_count *sum)
{
	return hydns_percpu_sum(bpf_map__fd(k->skel->maps.hydns_fwd_count), hydns_kern_geometry(k)->cpus, resolver,
				sizeof(*sum) / sizeof(__u64), (__u64 *)sum);
}

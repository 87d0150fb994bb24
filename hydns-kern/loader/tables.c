/* SPDX-License-Identifier: GPL-2.0-only */
/* The small tables: kill switch, counters, services, what is known of each resolver, its ACLs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "hydns/reasons.h"
#include "hydns-kern/loader/kern.h"

/* -- kill switch --------------------------------------------------------------------------------------- */
int hydns_kern_pause(struct hydns_kern *k, bool on)
{
	__u32 key = 0, value = on;

	return bpf_map_update_elem(bpf_map__fd(k->skel->maps.hydns_switch), &key, &value, BPF_ANY);
}

int hydns_kern_paused(struct hydns_kern *k, bool *on)
{
	__u32 key = 0, value;
	int err = bpf_map_lookup_elem(bpf_map__fd(k->skel->maps.hydns_switch), &key, &value);

	if (!err)
		*on = value != 0;
	return err;
}

/* -- counters ------------------------------------------------------------------------------------------ */
int hydns_percpu_sum(int map_fd, __u32 cpus, __u32 key, unsigned words, __u64 *sum)
{
	__u64 *each = calloc(cpus, words * sizeof(*each));
	int err;

	if (!each)
		return -ENOMEM;
	err = bpf_map_lookup_elem(map_fd, &key, each);
	if (!err) {
		memset(sum, 0, words * sizeof(*sum));
		for (__u32 cpu = 0; cpu < cpus; cpu++)
			for (unsigned w = 0; w < words; w++)
				sum[w] += each[cpu * words + w];
	}
	free(each);
	return err;
}

int hydns_kern_stats(struct hydns_kern *k, __u64 *reasons)
{
	int fd = bpf_map__fd(k->skel->maps.hydns_stats), err = 0;

	for (__u32 r = 0; r < HYDNS_REASONS && !err; r++)
		err = hydns_percpu_sum(fd, hydns_kern_geometry(k)->cpus, r, 1, &reasons[r]);
	return err;
}

int hydns_kern_resolver_counts(struct hydns_kern *k, __u32 resolver, struct hydns_resolver_count *sum)
{
	return hydns_percpu_sum(bpf_map__fd(k->skel->maps.hydns_answers), hydns_kern_geometry(k)->cpus, resolver,
				sizeof(*sum) / sizeof(__u64), (__u64 *)sum);
}

/* -- services ------------------------------------------------------------------------------------------ */
/* One writer: what was read is still there when it is written back. */
static int note_change(struct hydns_kern *k)
{
	int fd = bpf_map__fd(k->skel->maps.hydns_svcserial), err;
	__u32 zero = 0;
	__u64 changes;

	/* Who sees the new count sees the change, on every machine: system calls are no barriers. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	err = bpf_map_lookup_elem(fd, &zero, &changes);
	if (err)
		return err;
	changes++;
	return bpf_map_update_elem(fd, &zero, &changes, BPF_ANY);
}

int hydns_kern_service_set(struct hydns_kern *k, const struct hydns_service_key *key, __u32 resolver)
{
	struct hydns_service value = { .resolver = resolver };
	int err;

	if (resolver >= HYDNS_RESOLVERS)
		return -EINVAL;
	err = bpf_map_update_elem(bpf_map__fd(k->skel->maps.hydns_services), key, &value, BPF_ANY);
	return err ? err : note_change(k);
}

int hydns_kern_service_delete(struct hydns_kern *k, const struct hydns_service_key *key)
{
	int err = bpf_map_delete_elem(bpf_map__fd(k->skel->maps.hydns_services), key);

	return err ? err : note_change(k);
}

/* The keys are read before fn is called the first time, so fn may delete and add services. */
int hydns_kern_service_each(struct hydns_kern *k,
			    int (*fn)(const struct hydns_service_key *, __u32 resolver, void *), void *arg)
{
	int fd = bpf_map__fd(k->skel->maps.hydns_services), stop = 0;
	struct hydns_service_key *keys = calloc(HYDNS_SERVICES, sizeof(*keys)), *last = NULL;
	struct hydns_service value;
	unsigned n = 0;

	if (!keys)
		return -ENOMEM;
	while (n < HYDNS_SERVICES && !bpf_map_get_next_key(fd, last, &keys[n]))
		last = &keys[n++];
	for (unsigned i = 0; i < n && !stop; i++)
		if (!bpf_map_lookup_elem(fd, &keys[i], &value))
			stop = fn(&keys[i], value.resolver, arg);
	free(keys);
	return 0;
}

/* -- resolvers ----------------------------------------------------------------------------------------- */
int hydns_kern_resolver_config(struct hydns_kern *k, __u32 i, const struct hydns_resolver_config *c)
{
	return bpf_map_update_elem(bpf_map__fd(k->skel->maps.hydns_resolver), &i, c, BPF_ANY);
}

int hydns_kern_resolver_config_get(struct hydns_kern *k, __u32 i, struct hydns_resolver_config *c)
{
	return bpf_map_lookup_elem(bpf_map__fd(k->skel->maps.hydns_resolver), &i, c);
}

static int cookies_map(const struct hydns_kern *k)
{
	return bpf_map__fd(k->skel->maps.hydns_cookies);
}

int hydns_kern_cookies(struct hydns_kern *k, __u32 i, __u32 set, const struct hydns_cookies *c)
{
	__u32 key = HYDNS_COOKIES_INDEX(i, set);

	return bpf_map_update_elem(cookies_map(k), &key, c, BPF_ANY);
}

int hydns_kern_cookies_get(struct hydns_kern *k, __u32 i, __u32 set, struct hydns_cookies *c)
{
	__u32 key = HYDNS_COOKIES_INDEX(i, set);

	return bpf_map_lookup_elem(cookies_map(k), &key, c);
}

/* -- ACLs ---------------------------------------------------------------------------------------------- */
static int acl_new(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_NO_PREALLOC);

	return bpf_map_create(BPF_MAP_TYPE_LPM_TRIE, "hydns_acl", sizeof(struct hydns_acl_key),
			      sizeof(__u32), HYDNS_ACL_ENTRIES, &opts);
}

/* The pinned trie, if it is the one that the program uses: userspace can read no more of an inner map
 * than its id. */
static int acl_pinned(const struct hydns_kern *k, const char *name, __u32 i)
{
	__u32 id = 0;
	char path[PATH_MAX];
	int fd;

	if (hydns_pin_path(path, k->pin_dir, HYDNS_PIN_ACL, name) ||
	    bpf_map_lookup_elem(bpf_map__fd(k->skel->maps.hydns_acls), &i, &id))
		return -1;
	fd = bpf_obj_get(path);
	if (fd >= 0 && (!id || hydns_map_id(fd) != id)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* An empty trie passes everybody to the resolver, so one that was lost does no harm. */
static int acl_make(struct hydns_kern *k, const char *name, __u32 i)
{
	int err, fd = acl_new();

	if (fd < 0)
		return fd;
	err = hydns_pin_replace(fd, k->pin_dir, HYDNS_PIN_ACL, name);
	if (!err)
		err = bpf_map_update_elem(bpf_map__fd(k->skel->maps.hydns_acls), &i, &fd, BPF_ANY);
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

int hydns_acls_open(struct hydns_kern *k, bool adopted, char why[HYDNS_WHY])
{
	for (__u32 i = 0; i < HYDNS_ACL_MAPS; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%u", i);
		if (adopted)
			k->acl_fd[i] = acl_pinned(k, name, i);
		if (k->acl_fd[i] < 0)
			k->acl_fd[i] = acl_make(k, name, i);
		if (k->acl_fd[i] < 0)
			return hydns_fail(why, k->acl_fd[i], "can't make an ACL map: %s",
					  strerror(-k->acl_fd[i]));
	}
	return 0;
}

static int acl_empty(int fd)
{
	struct hydns_acl_key key;

	while (!bpf_map_get_next_key(fd, NULL, &key)) {
		int err = bpf_map_delete_elem(fd, &key);

		if (err)
			return err;
	}
	return 0;
}

int hydns_kern_acl_fill(struct hydns_kern *k, __u32 i, unsigned half, const struct hydns_acl_entry *e,
			size_t n)
{
	int fd, err;

	if (i >= HYDNS_RESOLVERS || half > 1)
		return -EINVAL;
	if (n > HYDNS_ACL_ENTRIES)
		return -E2BIG;
	fd = k->acl_fd[i * 2 + half];
	err = acl_empty(fd);
	for (size_t at = 0; at < n && !err; at++) {
		struct hydns_acl_key key = { .prefixlen = e[at].prefixlen };
		__u32 action = e[at].action;

		memcpy(key.addr, e[at].addr, sizeof(key.addr));
		err = bpf_map_update_elem(fd, &key, &action, BPF_ANY);
	}
	return err;
}

int hydns_kern_acl_read(struct hydns_kern *k, __u32 i, struct hydns_acl_entry *e, size_t room)
{
	struct hydns_resolver_config c;
	struct hydns_acl_key key, *last = NULL;
	__u32 action;
	size_t n = 0;
	int err, fd;

	if (i >= HYDNS_RESOLVERS)
		return -EINVAL;
	err = hydns_kern_resolver_config_get(k, i, &c);
	if (err)
		return err;
	fd = k->acl_fd[i * 2 + (c.acl_half & 1)];
	while (n < room && !bpf_map_get_next_key(fd, last, &key)) {
		last = &key;
		if (bpf_map_lookup_elem(fd, &key, &action))
			continue;
		e[n] = (struct hydns_acl_entry){ .prefixlen = (__u8)key.prefixlen, .action = (__u8)action };
		memcpy(e[n++].addr, key.addr, sizeof(key.addr));
	}
	return (int)n;
}

void hydns_kern_own_set(struct hydns_kern *k, const __u64 filter[HYDNS_OWN_WORDS])
{
	for (unsigned i = 0; i < HYDNS_OWN_WORDS; i++)
		__atomic_store_n(&k->skel->bss->hydns_own[i], filter[i], __ATOMIC_RELAXED);
}

static bool has_prefix(const __u8 addr[16], const __u8 prefix[16], unsigned bits)
{
	unsigned octets = bits / 8, rest = bits % 8;

	return !memcmp(addr, prefix, octets) && (!rest || !((addr[octets] ^ prefix[octets]) >> (8 - rest)));
}

static const __u8 ipv4_root[16] = { [10] = 0xff, [11] = 0xff }, ipv6_root[16];
#define IPV4_ROOT_BITS 96

static bool is_ipv4(const struct hydns_acl_entry *e)
{
	return e->prefixlen >= IPV4_ROOT_BITS && has_prefix(e->addr, ipv4_root, IPV4_ROOT_BITS);
}

/* Whether every address below this root is allowed: by the longest prefix that holds the root, and by each prefix
 * within. Those of IPv4 are no part of IPv6. Of equal prefixes the last counts, as in the trie. */
static bool allows_all(const struct hydns_acl_entry *e, size_t n, const __u8 root[16], unsigned bits)
{
	int longest = -1, action = HYDNS_ACL_PASS;

	for (; n; n--, e++) {
		if (e->prefixlen > bits) {
			if (e->action != HYDNS_ACL_ALLOW && has_prefix(e->addr, root, bits) && (bits || !is_ipv4(e)))
				return false;
		} else if (e->prefixlen >= longest && has_prefix(root, e->addr, e->prefixlen)) {
			longest = e->prefixlen;
			action = e->action;
		}
	}
	return action == HYDNS_ACL_ALLOW;
}

__u16 hydns_acl_flags(const struct hydns_acl_entry *e, size_t n)
{
	return (allows_all(e, n, ipv4_root, IPV4_ROOT_BITS) ? HYDNS_RESOLVER_ALLOWS_IPV4 : 0) |
	       (allows_all(e, n, ipv6_root, 0) ? HYDNS_RESOLVER_ALLOWS_IPV6 : 0);
}

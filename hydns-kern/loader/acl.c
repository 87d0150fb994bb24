/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Access lists: two LPM tries for each resolver, of which its configuration names the one in use while the other is filled.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "hydns-kern/loader/kern.h"

/* -- the tries ----------------------------------------------------------------------------------------- */
static int acl_new(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_NO_PREALLOC);

	return bpf_map_create(BPF_MAP_TYPE_LPM_TRIE, "hydns_acl", sizeof(struct hydns_acl_key),
			      sizeof(__u32), HYDNS_ACL_ENTRIES, &opts);
}

/* The pinned trie, if it is the one that the program uses. A look-up gives userspace an inner map's id only. */
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

/* A new trie replaces one that was lost: empty, it passes every client's queries to the resolver. */
static int acl_make(struct hydns_kern *k, const char *name, __u32 i)
{
	int err = 0, fd = acl_new();

	if (fd < 0)
		return fd;
	if (k->published)
		err = hydns_pin_replace(fd, k->pin_dir, HYDNS_PIN_ACL, name);
	if (!err)
		err = bpf_map_update_elem(bpf_map__fd(k->skel->maps.hydns_acls), &i, &fd, BPF_ANY);
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

static __u32 acl_count(int fd)
{
	struct hydns_acl_key key, *last = NULL;
	__u32 n = 0;

	for (; !bpf_map_get_next_key(fd, last, &key); last = &key)
		n++;
	return n;
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
		k->acl_entries[i] = acl_count(k->acl_fd[i]);
	}
	return 0;
}

int hydns_acls_publish(struct hydns_kern *k)
{
	int err = 0;

	for (__u32 i = 0; i < HYDNS_ACL_MAPS && !err; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%u", i);
		err = hydns_pin_replace(k->acl_fd[i], k->pin_dir, HYDNS_PIN_ACL, name);
	}
	return err;
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
	k->acl_entries[i * 2 + half] = (__u32)n;
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

/* -- who is allowed ------------------------------------------------------------------------------------ */
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

/* Whether every address below this root is allowed: by the longest prefix that covers the root, and by each prefix
 * within it. IPv4 prefixes are not counted as part of IPv6. Of equal prefixes the last counts, as in the trie. */
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

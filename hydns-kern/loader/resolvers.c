/* SPDX-License-Identifier: GPL-2.0-only */
/* What the program knows of each resolver: its configuration and its cookie secrets. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "hydns-kern/loader/kern.h"

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

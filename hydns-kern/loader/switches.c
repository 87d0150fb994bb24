/* SPDX-License-Identifier: GPL-2.0-only */
/* What hydnsd sets for the program as a whole: the kill switch, and the filter of the host's own addresses. */
#include <bpf/libbpf.h>
#include "hydns-kern/loader/kern.h"
#include "hydns-kern/loader/switch.h"

int hydns_kern_pause(struct hydns_kern *k, bool on)
{
	return hydns_switch_pause(bpf_map__fd(k->skel->maps.hydns_switch), on);
}

int hydns_kern_paused(struct hydns_kern *k, bool *on)
{
	return hydns_switch_paused(bpf_map__fd(k->skel->maps.hydns_switch), on);
}

void hydns_kern_own_set(struct hydns_kern *k, const __u64 filter[HYDNS_OWN_WORDS])
{
	for (unsigned i = 0; i < HYDNS_OWN_WORDS; i++)
		__atomic_store_n(&k->skel->bss->hydns_own[i], filter[i], __ATOMIC_RELAXED);
}

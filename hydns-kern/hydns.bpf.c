/* SPDX-License-Identifier: GPL-2.0-only */
#include "maps.bpf.h"

SEC("xdp")
int hydns_xdp(struct xdp_md *ctx)
{
	__u32 key = 0, *paused = bpf_map_lookup_elem(&hydns_switch, &key);

	if (!paused || *paused)
		return XDP_PASS;
	return hydns_geometry.buckets && hydns_ipv6 && hydns_vlan && hydns_partial_checksum &&
	       hydns_fixed_now_ns ? XDP_PASS : XDP_PASS;
}

char _license[] SEC("license") = "GPL";

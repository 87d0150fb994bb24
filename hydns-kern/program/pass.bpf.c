// SPDX-License-Identifier: GPL-2.0-only
/* Passes every packet. A veth delivers what its peer sends by XDP_TX only while it has a program itself. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* frags: on links whose MTU is more than a page, too */
SEC("xdp.frags")
int hydns_pass(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_PASS;
}

char _license[] SEC("license") = "GPL";

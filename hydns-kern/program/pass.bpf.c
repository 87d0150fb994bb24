// SPDX-License-Identifier: GPL-2.0-only
/* Passes every packet. A veth receives what its peer sends by XDP_TX only while it has an XDP program itself. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* frags: loads on links whose MTU exceeds a page, too */
SEC("xdp.frags")
int hydns_pass(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_PASS;
}

char _license[] SEC("license") = "GPL";

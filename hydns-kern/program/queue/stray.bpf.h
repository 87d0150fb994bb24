/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Answers to queries that left by a ring, and their ICMP errors, which come to the stack: fragments, packets of another
 * interface, all of them while the kill switch is on or the program is detached. No socket has their port; so the kernel,
 * which calls this program when it looks for one, gives them to a UDP socket of the thread that sent the query.
 */
#ifndef HYDNS_KERN_PROGRAM_QUEUE_STRAY_BPF_H
#define HYDNS_KERN_PROGRAM_QUEUE_STRAY_BPF_H

#include <linux/in.h>
#include "hydns-kern/program/query.bpf.h"
#include "hydns-kern/program/queue/ports.bpf.h"

#define HYDNS_STRAY_IPV4 2     /* AF_INET: libc's header is not for BPF */

/* By HYDNS_STRAY(). An entry goes when its socket is closed. Look-ups from user space give a socket's cookie. */
struct {
	__uint(type, BPF_MAP_TYPE_SOCKMAP);
	__uint(max_entries, HYDNS_STRAY(HYDNS_RESOLVERS, 0, 0));
	__type(key, __u32);
	__type(value, __u64);
} hydns_strays SEC(".maps");

/* IPv4-mapped, as for hydns_remote_tag(). */
static __always_inline void hydns_stray_remote(const struct bpf_sk_lookup *ctx, __u64 addr[2])
{
	if (ctx->family == HYDNS_STRAY_IPV4) {
		__u32 ipv4 = ctx->remote_ip4;

		HYDNS_OPAQUE(ipv4);    /* else clang makes one load of both families, at an offset that the verifier refuses */
		addr[0] = 0;
		addr[1] = 0xffff0000ULL | (__u64)ipv4 << 32;
		return;
	}
	addr[0] = ctx->remote_ip6[0] | (__u64)ctx->remote_ip6[1] << 32;
	addr[1] = ctx->remote_ip6[2] | (__u64)ctx->remote_ip6[3] << 32;
}

SEC("?sk_lookup")
int hydns_stray(struct bpf_sk_lookup *ctx)
{
	struct bpf_sock *socket;
	__u64 remote[2], word;
	__u32 i;

	if (ctx->protocol != IPPROTO_UDP || !hydns_is_upstream(ctx->local_port))
		return SK_PASS;
	hydns_stray_remote(ctx, remote);
	word = hydns_claimed(ctx->local_port, remote, ctx->remote_port);
	if (!word)
		return SK_PASS;
	i = HYDNS_STRAY(HYDNS_PORT_RESOLVER(word), HYDNS_PORT_THREAD(word), ctx->family != HYDNS_STRAY_IPV4);
	socket = bpf_map_lookup_elem(&hydns_strays, &i);
	if (!socket)
		return SK_PASS;
	bpf_sk_assign(ctx, socket, 0);
	bpf_sk_release(socket);
	return SK_PASS;
}

#endif

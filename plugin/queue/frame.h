/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * UDP datagrams in Ethernet frames, for packet rings: taken apart and put together, without any I/O. What a socket's
 * kernel does for it is done here: lengths, checksums, addresses. Fragments, IP options and IPv6 extension headers are not
 * taken; a datagram that would have to be fragmented is not put together: sockets have these.
 */
#ifndef PLUGIN_QUEUE_FRAME_H
#define PLUGIN_QUEUE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HYDNS_L2_MAX         22    /* octets: addresses, two VLAN tags (802.1ad), EtherType */
#define HYDNS_FRAME_HEADERS  (HYDNS_L2_MAX + 40 + 8)  /* most octets before a payload: with IPv6 and UDP */
#define HYDNS_IPV6_MTU_MIN   1280  /* RFC 8200 section 5: every path carries as much */

/* What a datagram is sent by: from local to remote. Addresses in network order, those of IPv4 in the first 4 octets and
 * zeros behind them; ports in host order. */
struct hydns_path {
	uint8_t l2[HYDNS_L2_MAX];  /* the Ethernet header, as it is sent */
	uint8_t l2_len;            /* 14, 18 or 22 */
	bool ipv6;
	uint16_t local_port, remote_port;
	uint8_t local[16], remote[16];
};

/* A datagram that has come. */
struct hydns_datagram {
	struct hydns_path path;    /* by which a reply is sent: Ethernet addresses are exchanged, tags stay */
	const uint8_t *payload;    /* in the frame */
	uint16_t len;
};

/* What the sender chooses. */
struct hydns_ip_options {
	uint8_t dscp;              /* 0..63: RFC 2474 */
	uint8_t hops;              /* TTL or hop limit */
	uint16_t id;               /* of an IPv4 packet, in host order: RFC 6864 section 4.1 */
	uint32_t flow;             /* flow label of an IPv6 packet, 20 bits: RFC 6437 */
	uint16_t mtu;              /* octets of the IP packet that the interface sends */
};

/*
 * Takes a frame of len octets apart. False when it holds no whole UDP datagram for one host: another protocol, a group
 * address, a fragment, IP options or extension headers, lengths that contradict each other, a wrong checksum (or none, in
 * IPv6: RFC 8200 section 8.1), port 0. Octets behind the IP packet are padding. accept_unfinished: a checksum that the
 * sender's kernel has left to a card (CHECKSUM_PARTIAL) counts as right: virtual interfaces hand such frames over.
 */
bool hydns_frame_read(struct hydns_datagram *d, const uint8_t *frame, size_t len, bool accept_unfinished);

/* Octets of the frame that hydns_frame_write would make for a payload of len octets; 0 when the packet is longer than the
 * interface sends, or, with IPv6, than every path carries. */
size_t hydns_frame_len(const struct hydns_path *p, size_t len, uint16_t mtu);

/*
 * Writes a frame with the payload into frame, which has room for room octets, and returns its length; 0 when it does not
 * fit (see hydns_frame_len). payload may be in frame already, where hydns_frame_payload says. A reply's UDP checksum is
 * always there.
 */
size_t hydns_frame_write(uint8_t *frame, size_t room, const struct hydns_path *p, const struct hydns_ip_options *o,
			 const uint8_t *payload, size_t len);

/* Where the payload begins in a frame of this path. */
static inline size_t hydns_frame_payload(const struct hydns_path *p)
{
	return p->l2_len + (p->ipv6 ? 40U : 20U) + 8;
}

#endif

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "plugin/queue/frame.h"

#include <arpa/inet.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>
#include <string.h>

#define VLAN_TAGS   2
#define VLAN_TAG    4               /* octets */
#define PROVIDER    0x88a8          /* EtherType of an 802.1ad tag */
#define FRAGMENT    0x3fff          /* more fragments, and the offset; not DF: RFC 791 section 3.1 */

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

/* --- checksums ----------------------------------------------------------------------------------------- */
/* Adds len octets to a sum of words in the machine's byte order, which gives the same checksum: RFC 1071 section 2. A
 * last odd octet is the first of its word. */
static uint64_t add(uint64_t sum, const void *data, size_t len)
{
	const uint8_t *p = data;

	for (; len >= 4; p += 4, len -= 4) {
		uint32_t word;

		memcpy(&word, p, sizeof(word));
		sum += word;
	}
	if (len) {
		uint32_t word = 0;

		memcpy(&word, p, len);
		sum += word;
	}
	return sum;
}

/* As it stands in a packet. */
static uint16_t checksum(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* The pseudo-header (RFC 768, RFC 8200 section 8.1) and the datagram, whose checksum field counts as it stands. */
static uint64_t udp_sum(const uint8_t *from, const uint8_t *to, size_t address, const void *udp, size_t len)
{
	uint64_t sum = (uint64_t)htons(IPPROTO_UDP) + htons((uint16_t)len);

	sum = add(sum, from, address);
	sum = add(sum, to, address);
	return add(sum, udp, len);
}

/* --- reading ------------------------------------------------------------------------------------------- */
struct cursor {
	const uint8_t *at, *end;
};

static size_t left(const struct cursor *c)
{
	return (size_t)(c->end - c->at);
}

/* The Ethernet header, exchanged. Returns the EtherType behind the tags, 0: none that is read. */
static uint16_t read_l2(struct cursor *c, struct hydns_path *p)
{
	const uint8_t *begin = c->at;
	uint16_t type;

	if (left(c) < ETH_HLEN || ((begin[0] | begin[ETH_ALEN]) & 1))
		return 0;
	type = get16(begin + 2 * ETH_ALEN);
	c->at += ETH_HLEN;
	for (int i = 0; i < VLAN_TAGS && (type == ETHERTYPE_VLAN || type == PROVIDER); i++) {
		if (left(c) < VLAN_TAG)
			return 0;
		type = get16(c->at + 2);
		c->at += VLAN_TAG;
	}
	p->l2_len = (uint8_t)(c->at - begin);
	memcpy(p->l2, begin + ETH_ALEN, ETH_ALEN);
	memcpy(p->l2 + ETH_ALEN, begin, ETH_ALEN);
	memcpy(p->l2 + 2 * ETH_ALEN, begin + 2 * ETH_ALEN, p->l2_len - 2 * ETH_ALEN);
	return type;
}

static bool read_ipv4(struct cursor *c, struct hydns_path *p)
{
	const uint8_t *ip = c->at;
	size_t total;

	if (left(c) < sizeof(struct iphdr) || ip[0] != (IPVERSION << 4 | sizeof(struct iphdr) / 4))
		return false;
	total = get16(ip + 2);
	if (total < sizeof(struct iphdr) || total > left(c) || (get16(ip + 6) & FRAGMENT) || ip[9] != IPPROTO_UDP ||
	    checksum(add(0, ip, sizeof(struct iphdr))) != 0)
		return false;
	memcpy(p->remote, ip + 12, 4);
	memcpy(p->local, ip + 16, 4);
	c->at += sizeof(struct iphdr);
	c->end = ip + total;
	return true;
}

static bool read_ipv6(struct cursor *c, struct hydns_path *p)
{
	const uint8_t *ip = c->at;
	size_t payload;

	if (left(c) < sizeof(struct ip6_hdr) || ip[0] >> 4 != 6 || ip[6] != IPPROTO_UDP)
		return false;
	payload = get16(ip + 4);
	c->at += sizeof(struct ip6_hdr);
	if (payload > left(c))
		return false;
	memcpy(p->remote, ip + 8, 16);
	memcpy(p->local, ip + 24, 16);
	c->end = c->at + payload;
	p->ipv6 = true;
	return true;
}

/* The sum of the pseudo-header alone: the sender's kernel has left the rest to a card, and none was on the way. */
static bool unfinished(const struct hydns_path *p, uint16_t sent, size_t len)
{
	uint16_t sum = (uint16_t)~checksum(udp_sum(p->remote, p->local, p->ipv6 ? 16 : 4, NULL, 0) + htons((uint16_t)len));

	return sum == sent;
}

static bool read_udp(const struct cursor *c, struct hydns_datagram *d, bool accept_unfinished)
{
	const uint8_t *udp = c->at;
	struct hydns_path *p = &d->path;
	uint16_t sent;

	if (left(c) < sizeof(struct udphdr) || get16(udp + 4) != left(c))
		return false;
	p->remote_port = get16(udp);
	p->local_port = get16(udp + 2);
	memcpy(&sent, udp + 6, sizeof(sent));
	if (p->remote_port == 0 || p->local_port == 0 || (sent == 0 && p->ipv6))
		return false;
	if (sent != 0 && checksum(udp_sum(p->remote, p->local, p->ipv6 ? 16 : 4, udp, left(c))) != 0 &&
	    !(accept_unfinished && unfinished(p, sent, left(c))))
		return false;
	d->payload = udp + sizeof(struct udphdr);
	d->len = (uint16_t)(left(c) - sizeof(struct udphdr));
	return true;
}

bool hydns_frame_read(struct hydns_datagram *d, const uint8_t *frame, size_t len, bool accept_unfinished)
{
	struct cursor c = { frame, frame + len };

	memset(d, 0, sizeof(*d));
	switch (read_l2(&c, &d->path)) {
	case ETHERTYPE_IP:
		return read_ipv4(&c, &d->path) && read_udp(&c, d, accept_unfinished);
	case ETHERTYPE_IPV6:
		return read_ipv6(&c, &d->path) && read_udp(&c, d, accept_unfinished);
	default:
		return false;
	}
}

/* --- writing ------------------------------------------------------------------------------------------- */
static uint8_t *put16(uint8_t *p, unsigned v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
	return p + 2;
}

size_t hydns_frame_len(const struct hydns_path *p, size_t len, uint16_t mtu)
{
	size_t ip = hydns_frame_payload(p) - p->l2_len;
	size_t most = p->ipv6 && mtu > HYDNS_IPV6_MTU_MIN ? HYDNS_IPV6_MTU_MIN : mtu;

	return ip > most || len > most - ip ? 0 : p->l2_len + ip + len;
}

static uint8_t *write_ipv4(uint8_t *ip, const struct hydns_path *p, const struct hydns_ip_options *o, size_t udp_len)
{
	uint16_t sum;

	ip[0] = IPVERSION << 4 | sizeof(struct iphdr) / 4;
	ip[1] = (uint8_t)(o->dscp << 2);
	put16(ip + 2, (unsigned)(sizeof(struct iphdr) + udp_len));
	put16(ip + 4, o->id);
	put16(ip + 6, 0);
	ip[8] = o->hops;
	ip[9] = IPPROTO_UDP;
	put16(ip + 10, 0);
	memcpy(ip + 12, p->local, 4);
	memcpy(ip + 16, p->remote, 4);
	sum = checksum(add(0, ip, sizeof(struct iphdr)));
	memcpy(ip + 10, &sum, sizeof(sum));
	return ip + sizeof(struct iphdr);
}

static uint8_t *write_ipv6(uint8_t *ip, const struct hydns_path *p, const struct hydns_ip_options *o, size_t udp_len)
{
	uint32_t first = htonl(6U << 28 | (uint32_t)o->dscp << 22 | (o->flow & 0xfffff));

	memcpy(ip, &first, sizeof(first));
	put16(ip + 4, (unsigned)udp_len);
	ip[6] = IPPROTO_UDP;
	ip[7] = o->hops;
	memcpy(ip + 8, p->local, 16);
	memcpy(ip + 24, p->remote, 16);
	return ip + sizeof(struct ip6_hdr);
}

size_t hydns_frame_write(uint8_t *frame, size_t room, const struct hydns_path *p, const struct hydns_ip_options *o,
			 const uint8_t *payload, size_t len)
{
	size_t total = hydns_frame_len(p, len, o->mtu), udp_len = sizeof(struct udphdr) + len;
	uint8_t *udp;
	uint16_t sum;

	if (total == 0 || total > room)
		return 0;
	memmove(frame + hydns_frame_payload(p), payload, len);
	memcpy(frame, p->l2, p->l2_len);
	udp = p->ipv6 ? write_ipv6(frame + p->l2_len, p, o, udp_len) : write_ipv4(frame + p->l2_len, p, o, udp_len);
	put16(put16(put16(put16(udp, p->local_port), p->remote_port), (unsigned)udp_len), 0);
	sum = checksum(udp_sum(p->local, p->remote, p->ipv6 ? 16 : 4, udp, udp_len));
	if (sum == 0)       /* 0 says that there is none: RFC 768 */
		sum = 0xffff;
	memcpy(udp + 6, &sum, sizeof(sum));
	return total;
}

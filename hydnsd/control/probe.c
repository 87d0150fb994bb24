/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/control/probe.h"
#include "hydnsd/netdev/prefixes.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "hydns/dns.h"

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
#define IPV4_LEN       20
#define IPV6_LEN       40
#define UDP_LEN        8
#define HOPS           64
#define CLIENT_PORT    49152           /* RFC 6335: the first dynamic port */

static const uint8_t macs[12] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2 }; /* locally administered */

static uint8_t *put(uint8_t *p, const void *data, size_t len)
{
	memcpy(p, data, len);
	return p + len;
}

static uint8_t *put16(uint8_t *p, unsigned v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
	return p + 2;
}

/* The folded sum of RFC 1071, added to start. */
static uint16_t sum16(const uint8_t *p, size_t len, uint32_t start)
{
	uint32_t sum = start;

	for (size_t i = 0; i < len; i++)
		sum += i & 1 ? p[i] : (uint32_t)p[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

static uint8_t *put_opt(uint8_t *p, const struct hydnsd_query *q)
{
	*p++ = 0;                      /* the root */
	p = put16(put16(p, HYDNS_TYPE_OPT), q->edns_size);
	p = put16(put16(p, 0), q->dnssec_ok ? HYDNS_EDNS_DO : 0);
	if (!q->cookie_len)
		return put16(p, 0);
	p = put16(p, 4U + q->cookie_len);
	p = put16(put16(p, HYDNS_OPTION_COOKIE), q->cookie_len);
	return put(p, q->cookie, q->cookie_len);
}

static uint8_t *put_message(uint8_t *p, const struct hydnsd_query *q)
{
	p = put16(put16(p, 0), q->norec ? 0 : HYDNS_FLAG_RD); /* any id will do */
	p = put16(put16(p, 1), 0);
	p = put16(put16(p, 0), q->edns);
	p = put(p, q->name.octet, q->name.len);
	p = put16(put(p, &q->qtype, sizeof(q->qtype)), 1);
	return q->edns ? put_opt(p, q) : p;
}

/* len: octets after the header. */
static uint8_t *put_ipv4(uint8_t *p, const uint8_t client[16], const uint8_t service[16], size_t len)
{
	uint8_t *ip = p;

	p = put(p, (const uint8_t[]){ 0x45, 0 }, 2);
	p = put16(p, (unsigned)(IPV4_LEN + len));
	p = put(p, (const uint8_t[]){ 0, 0, 0, 0, HOPS, IPPROTO_UDP, 0, 0 }, 8);
	p = put(put(p, client + 12, 4), service + 12, 4);
	put16(ip + 10, (uint16_t)~sum16(ip, IPV4_LEN, 0));
	return p;
}

static uint8_t *put_ipv6(uint8_t *p, const uint8_t client[16], const uint8_t service[16], size_t len)
{
	p = put(p, (const uint8_t[]){ 0x60, 0, 0, 0 }, 4);
	p = put16(p, (unsigned)len);
	p = put(p, (const uint8_t[]){ IPPROTO_UDP, HOPS }, 2);
	return put(put(p, client, 16), service, 16);
}

/* addresses: octets of the IP addresses, right before the UDP header; the pseudo-header has them. */
static void put_udp_checksum(uint8_t *udp, size_t len, size_t addresses)
{
	uint16_t sum = (uint16_t)~sum16(udp - addresses, addresses + len, (uint32_t)(IPPROTO_UDP + len));

	put16(udp + 6, sum ? sum : 0xffff);
}

size_t hydnsd_probe_frame(const struct hydnsd_query *q, const uint8_t client[16], const struct hydns_service_key *service,
			  uint8_t frame[HYDNSD_PROBE_MOST])
{
	bool v4 = hydnsd_is_mapped(service->addr);
	uint8_t message[HYDNSD_PROBE_MOST], *p = frame, *udp;
	size_t len = UDP_LEN + (size_t)(put_message(message, q) - message);

	p = put16(put(p, macs, sizeof(macs)), v4 ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6);
	p = v4 ? put_ipv4(p, client, service->addr, len) : put_ipv6(p, client, service->addr, len);
	udp = p;
	p = put16(put(put16(p, CLIENT_PORT), &service->port, sizeof(service->port)), (unsigned)len);
	p = put(put16(p, 0), message, len - UDP_LEN);
	put_udp_checksum(udp, len, v4 ? 8 : 32);
	return (size_t)(p - frame);
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/parking/checksum.h"

#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>
#include <stddef.h>
#include <string.h>

/* RFC 1071 sum of octets as words of the network's order; of an odd number the last is the upper half of a word. */
static uint32_t add(uint32_t sum, const uint8_t *at, uint32_t len)
{
	for (; len > 1; at += 2, len -= 2)
		sum += (uint32_t)at[0] << 8 | at[1];
	return len ? sum + ((uint32_t)at[0] << 8) : sum;
}

static uint16_t fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* Of RFC 768 or RFC 8200 section 8.1. */
static uint32_t pseudo_header(const uint8_t *udp, bool ipv6, uint32_t udp_len)
{
	uint32_t addresses = ipv6 ? 2 * sizeof(struct in6_addr) : 2 * sizeof(struct in_addr);

	return add(udp_len + IPPROTO_UDP, udp - addresses, addresses); /* they end the IP header */
}

void hydnsd_checksum_complete(uint8_t *frame, uint32_t len, uint32_t dns_off, bool ipv6)
{
	uint32_t headers = (ipv6 ? sizeof(struct ip6_hdr) : sizeof(struct ip)) + sizeof(struct udphdr), sum;
	uint8_t *udp = frame + dns_off - sizeof(struct udphdr);
	struct udphdr head;

	if (dns_off < headers || dns_off > len)
		return;
	memcpy(&head, udp, sizeof(head));
	sum = ntohs(head.len) < sizeof(head) || ntohs(head.len) > frame + len - udp ? 0 : pseudo_header(udp, ipv6, ntohs(head.len));
	if (!sum || ntohs(head.check) != fold(sum))
		return;
	memset(udp + offsetof(struct udphdr, check), 0, sizeof(head.check));
	sum = (uint16_t)~fold(add(sum, udp, ntohs(head.len)));
	head.check = htons(sum ? (uint16_t)sum : 0xffff); /* 0 stands for "no checksum" */
	memcpy(udp, &head, sizeof(head));
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/tests/parked.h"
#include "hydns-kern/tests/frame.h"

#define ETHERNET 14
#define HEADER   12

/* Folded; 0xffff stands for 0, as in RFC 1071. */
static uint16_t sum_of(uint64_t sum, const uint8_t *octets, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		sum += i % 2 ? octets[i] : octets[i] * 256U;
	return (uint16_t)(sum % 0xffff ? sum % 0xffff : 0xffff);
}

uint16_t parked_pseudo_sum(const uint8_t *addresses, unsigned n, unsigned udp_len)
{
	return sum_of(17 + udp_len, addresses, n);
}

static uint16_t checksum(const uint8_t *addresses, unsigned n, const uint8_t *udp, unsigned udp_len)
{
	return (uint16_t)~sum_of(parked_pseudo_sum(addresses, n, udp_len), udp, udp_len);
}

struct parked_query parked_query(const char *name, uint64_t key, uint64_t at_ns, bool ipv6)
{
	unsigned addresses = ipv6 ? 32 : 8, ip = ETHERNET + (ipv6 ? 8 : 12), udp = ip + addresses, dns = udp + 8, len;
	struct parked_query q = { .record = { .key = key, .at_ns = at_ns, .ifindex = 2, .resolver = 1, .ipv6 = ipv6 } };
	uint16_t sum;

	q.record.dns_off = (uint16_t)dns;
	q.record.name_len = (uint8_t)name_wire(name, q.octet + dns + HEADER);
	len = HEADER + q.record.name_len + 4U;
	q.record.frame_len = (uint16_t)(dns + len);
	q.octet[dns + 5] = 1;          /* QDCOUNT */
	q.octet[dns + len - 3] = q.octet[dns + len - 1] = 1; /* A, IN */
	for (unsigned i = 0; i < addresses; i++)
		q.octet[ip + i] = (uint8_t)(0xa0 + i);
	q.octet[udp + 1] = 99;         /* source port */
	q.octet[udp + 3] = 53;
	q.octet[udp + 5] = (uint8_t)(len + 8);
	sum = checksum(q.octet + ip, addresses, q.octet + udp, len + 8);
	q.octet[udp + 6] = (uint8_t)(sum >> 8);
	q.octet[udp + 7] = (uint8_t)sum;
	return q;
}

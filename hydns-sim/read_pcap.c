/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Captures in pcap format, as of tcpdump: UDP to and from port 53, over IPv4 and IPv6. Ignores fragments. */
#include "config.h"

#include <arpa/inet.h>
#include <net/ethernet.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>
#include <pcap/pcap.h>
#include <string.h>

#include "hydns-sim/read_internal.h"

#define DNS_PORT     53
#define VLAN_LEN     4
#define SLL_PROTOCOL 14                /* offset of the protocol in a cooked header, and its length */
#define SLL_LEN      16
#define SLL2_LEN     20
#define NULL_LEN     4

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

/* Octets before the IP header (0 for raw IP), negative when it is not IP. */
static int link_header(int type, const uint8_t *p, size_t len)
{
	size_t at;

	switch (type) {
	case DLT_RAW:
		return 0;
	case DLT_NULL:
	case DLT_LOOP:
		return NULL_LEN;
	case DLT_LINUX_SLL:
		return len > SLL_LEN ? SLL_LEN : -1;
	case DLT_LINUX_SLL2:
		return len > SLL2_LEN ? SLL2_LEN : -1;
	case DLT_EN10MB:
		for (at = 2 * ETH_ALEN; at + 2 < len; at += VLAN_LEN) {
			uint16_t protocol = get16(p + at);

			if (protocol == ETHERTYPE_IP || protocol == ETHERTYPE_IPV6)
				return (int)at + 2;
			if (protocol != ETHERTYPE_VLAN && protocol != 0x88a8)
				return -1;
		}
		return -1;
	default:
		return -1;
	}
}

/* Offset of the UDP header after the IP header, 0 when there is none. */
static size_t ip_header(const uint8_t *p, size_t len)
{
	struct ip6_hdr six;
	struct ip four;

	if (len >= sizeof(four) && p[0] >> 4 == 4) {
		memcpy(&four, p, sizeof(four));
		return four.ip_p == IPPROTO_UDP && !(ntohs(four.ip_off) & (IP_MF | IP_OFFMASK)) ? four.ip_hl * 4U : 0;
	}
	if (len >= sizeof(six) && p[0] >> 4 == 6) {
		memcpy(&six, p, sizeof(six));
		return six.ip6_nxt == IPPROTO_UDP ? sizeof(six) : 0;
	}
	return 0;
}

static int take(struct reader *r, int type, const struct pcap_pkthdr *h, const uint8_t *p)
{
	int link = link_header(type, p, h->caplen);
	size_t udp = link < 0 ? 0 : ip_header(p + link, h->caplen - (size_t)link), at = (size_t)link + udp;

	r->counts->frames++;
	if (!udp || at + sizeof(struct udphdr) > h->caplen ||
	    (get16(p + at) != DNS_PORT && get16(p + at + 2) != DNS_PORT)) {
		r->counts->ignored++;
		return 0;
	}
	at += sizeof(struct udphdr);
	return read_message(r, p + at, h->caplen - at,
			    (uint64_t)h->ts.tv_sec * 1000000 + (uint64_t)h->ts.tv_usec);
}

int read_pcap(struct reader *r)
{
	char why[PCAP_ERRBUF_SIZE];
	pcap_t *in = pcap_open_offline(r->path, why);
	struct pcap_pkthdr *h;
	const uint8_t *p;
	int got, rc = 0;

	if (!in)
		return read_fail(r, "not a capture that can be read: %.200s", why);
	while (!rc && (got = pcap_next_ex(in, &h, &p)) == 1)
		rc = take(r, pcap_datalink(in), h, p);
	if (!rc && got == PCAP_ERROR)
		rc = read_fail(r, "%.200s: the capture seems truncated; repair it or take another", pcap_geterr(in));
	pcap_close(in);
	return rc;
}

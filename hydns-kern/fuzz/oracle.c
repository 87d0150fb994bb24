/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include "hydns/hash.h"
#include "hydns-kern/tests/frame.h"
#include "oracle.h"
/* after <stdbool.h>, or ldns defines its own bool */
#include <ldns/ldns.h>

#define FRAME_ETH     14
#define VLAN_TAG      4
#define OPTION_HEADER 4
#define OPTIONS_MAX   8     /* EDNS options that the program reads */

/* --- headers ---------------------------------------------------------------------------------------- */
/* A UDP datagram in a frame. IPv4 addresses are IPv4-mapped. */
struct datagram {
	bool ipv6;
	uint8_t src[16], dst[16];
	uint16_t sport, dport, addr_sum;
	const uint8_t *payload;
	size_t payload_off, payload_len;
};

static uint16_t get16(const uint8_t *p)
{
	return p[0] << 8 | p[1];
}

/* Offset of the IP header, and *proto, the EtherType before it; 0: none. */
static size_t network_header(const uint8_t *frame, size_t len, bool vlan, uint16_t *proto)
{
	size_t off = FRAME_ETH;

	if (len < off)
		return 0;
	*proto = get16(frame + off - 2);
	for (int tags = 0; vlan && tags < 2 && (*proto == 0x8100 || *proto == 0x88a8); tags++) {
		off += VLAN_TAG;
		if (len < off)
			return 0;
		*proto = get16(frame + off - 2);
	}
	return off;
}

/* Octets of the UDP datagram in the IP packet; 0: the packet is cut, or the program passes its kind. */
static size_t read_ipv4(const uint8_t *ip, size_t len, struct datagram *d)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (len < 20 || ip[0] != 0x45 || ip[9] != 17 || get16(ip + 2) > len || get16(ip + 2) < 28 ||
	    (get16(ip + 6) & 0xbfff) || sum16(ip, 20, 0) != 0xffff)
		return 0;
	memcpy(d->src, mapped, 12);
	memcpy(d->src + 12, ip + 12, 4);
	memcpy(d->dst, mapped, 12);
	memcpy(d->dst + 12, ip + 16, 4);
	d->addr_sum = sum16(ip + 12, 8, 0);
	return get16(ip + 2) - 20;
}

static size_t read_ipv6(const uint8_t *ip, size_t len, struct datagram *d)
{
	if (len < 40 || ip[0] >> 4 != 6 || ip[6] != 17 || get16(ip + 4) + 40u > len || get16(ip + 4) < 8)
		return 0;
	memcpy(d->src, ip + 8, 16);
	memcpy(d->dst, ip + 24, 16);
	d->addr_sum = sum16(ip + 8, 32, 0);
	d->ipv6 = true;
	return get16(ip + 4);
}

static bool checksum_right(const uint8_t *udp, size_t len, const struct datagram *d, bool partial)
{
	uint16_t pseudo = sum16(NULL, 0, (uint32_t)d->addr_sum + 17 + len), given = get16(udp + 6);

	if (!given)
		return !d->ipv6;
	return sum16(udp, len, pseudo) == 0xffff || (partial && given == pseudo);
}

static const char *read_datagram(const uint8_t *frame, size_t len, const struct stages_settings *s,
				 struct datagram *d)
{
	uint16_t proto = 0;
	size_t l3 = network_header(frame, len, s->vlan, &proto), udp_len = 0;
	const uint8_t *udp;

	memset(d, 0, sizeof(*d));
	if (!l3)
		return "no network header";
	if ((frame[0] & 1) || (frame[6] & 1))
		return "a group address in the Ethernet header";
	if (proto == 0x0800)
		udp_len = read_ipv4(frame + l3, len - l3, d);
	else if (proto == 0x86dd && s->ipv6)
		udp_len = read_ipv6(frame + l3, len - l3, d);
	if (!udp_len)
		return "no whole ordinary IP packet with UDP";
	udp = frame + l3 + (d->ipv6 ? 40 : 20);
	if (get16(udp + 4) != udp_len)
		return "a UDP length other than the IP header's";
	if (!checksum_right(udp, udp_len, d, s->partial_checksum))
		return "a wrong UDP checksum";
	d->sport = get16(udp);
	d->dport = get16(udp + 2);
	d->payload = udp + 8;
	d->payload_off = d->payload - frame;
	d->payload_len = udp_len - 8;
	return NULL;
}

/* False: a reply to this source would reach nobody, a group, or a server that answers it. */
static bool source_answerable(const struct datagram *d)
{
	static const uint8_t zero[8];
	uint8_t first = d->src[d->ipv6 ? 0 : 12];

	if (!d->sport || d->sport == 53 || !memcmp(d->src, d->dst, 16))
		return false;
	if (d->ipv6)
		return first != 0xff && memcmp(d->src, zero, 8);
	return first != 0 && first != 127 && first < 224;
}

/* --- message ---------------------------------------------------------------------------------------- */
/* Whether ldns writes the message that it has read as the same octets. */
static bool same_again(const ldns_pkt *p, const uint8_t *wire, size_t len)
{
	uint8_t *again = NULL;
	size_t again_len = 0;
	bool same = ldns_pkt2wire(&again, p, &again_len) == LDNS_STATUS_OK && again_len == len &&
		    !memcmp(again, wire, len);

	free(again);
	return same;
}

static const char *read_header(const ldns_pkt *p)
{
	if (ldns_pkt_qr(p) || ldns_pkt_get_opcode(p) != LDNS_PACKET_QUERY || ldns_pkt_aa(p) ||
	    ldns_pkt_tc(p) || ldns_pkt_ra(p) || ldns_pkt_cd(p) || ldns_pkt_get_rcode(p))
		return "unusual flags";
	if (ldns_pkt_qdcount(p) != 1 || ldns_pkt_ancount(p) || ldns_pkt_nscount(p) ||
	    ldns_rr_list_rr_count(ldns_pkt_additional(p)) || ldns_pkt_tsig(p))
		return "more than a question and OPT";
	return NULL;
}

static const char *read_question(const ldns_pkt *p)
{
	const ldns_rr *question = ldns_rr_list_rr(ldns_pkt_question(p), 0);
	unsigned type = ldns_rr_get_type(question);

	if (ldns_rr_get_class(question) != LDNS_RR_CLASS_IN)
		return "a class other than IN";
	if (!type || type == LDNS_RR_TYPE_OPT || (type >= 128 && type <= 255))
		return "a type without data of its own";
	return NULL;
}

/* Lengths of a COOKIE option: RFC 7873 section 4. */
static bool cookie_formed(const ldns_edns_option *o)
{
	size_t n = ldns_edns_get_size(o);

	return n == 8 || (n >= 16 && n <= 40);
}

/* NULL: the options fill the OPT record, none needs the resolver, and the first COOKIE is well formed or ignored. */
static const char *read_options(ldns_pkt *p, uint16_t resolver_flags)
{
	ldns_edns_option_list *list = ldns_pkt_edns_get_option_list(p);
	size_t count = list ? ldns_edns_option_list_get_count(list) : 0, left = ldns_rdf_size(ldns_pkt_edns_data(p));
	bool look = !(resolver_flags & HYDNS_RESOLVER_IGNORES_COOKIE);

	if (count > OPTIONS_MAX)
		return "many options";
	for (size_t i = 0; i < count; i++) {
		ldns_edns_option *option = ldns_edns_option_list_get_option(list, i);

		left -= OPTION_HEADER + ldns_edns_get_size(option);
		switch (ldns_edns_get_code(option)) {
		case LDNS_EDNS_NSID:
		case LDNS_EDNS_CLIENT_SUBNET:
		case LDNS_EDNS_EXPIRE:
			return "an option that needs the resolver";
		case LDNS_EDNS_COOKIE:
			if (look && !cookie_formed(option))
				return "a malformed COOKIE";
			look = false;
			break;
		default:
			break;
		}
	}
	return left ? "options that do not fill their record" : NULL;
}

static const char *read_edns(ldns_pkt *p, uint16_t resolver_flags)
{
	if (!ldns_pkt_edns(p))
		return NULL;
	if (ldns_pkt_edns_version(p) || ldns_pkt_edns_extended_rcode(p) || (ldns_pkt_edns_z(p) & 0x7fff))
		return "unusual EDNS";
	return ldns_pkt_edns_data(p) ? read_options(p, resolver_flags) : NULL;
}

/* NULL: the message is an ordinary query, in *out. Otherwise why it is not; *out may be set, too. */
static const char *read_message(const struct datagram *d, uint16_t resolver_flags, ldns_pkt **out)
{
	const char *why = NULL;

	if (d->payload_len > HYDNS_QUERY_MAX)
		return "a long message";
	if (ldns_wire2pkt(out, d->payload, d->payload_len) != LDNS_STATUS_OK) {
		*out = NULL;
		return "a message that ldns can't read";
	}
	if (!same_again(*out, d->payload, d->payload_len))
		return "a message that ldns would write otherwise";
	(void)((why = read_header(*out)) || (why = read_question(*out)) || (why = read_edns(*out, resolver_flags)));
	return why;
}

/* --- judgement -------------------------------------------------------------------------------------- */
static const char *compare_headers(const struct datagram *d, const struct stages_outcome *o)
{
	if (o->ipv6 != d->ipv6 || memcmp(o->client, d->src, 16) || memcmp(o->service, d->dst, 16))
		return "addresses";
	if (o->client_port != d->sport || o->service_port != d->dport)
		return "ports";
	if (o->message_off != d->payload_off || o->message_len != d->payload_len)
		return "place of the message";
	/* The sum of words in memory order is in memory order (RFC 1071 section 2 B). */
	if (ntohs(o->addr_sum) != d->addr_sum)
		return "sum of the addresses";
	return NULL;
}

static const char *compare_name(const ldns_rdf *name, const struct stages_outcome *o)
{
	size_t len = ldns_rdf_size(name);
	const uint8_t *octets = ldns_rdf_data(name);
	uint8_t lower[HYDNS_NAME_MAX + 1] = { 0 };

	if (o->name_len != len)
		return "length of the name";
	for (size_t i = 0; i < len; i++)
		lower[i] = octets[i] >= 'A' && octets[i] <= 'Z' ? octets[i] + 'a' - 'A' : octets[i];
	if (memcmp(o->name, lower, (len + 7) / 8 * 8))
		return "name in lower case";
	if (o->hash != hydns_key_hash(lower, len, htons(o->qtype), o->variant, STAGES_RESOLVER,
				      (const __u64 *)stages_seed))
		return "hash of the key";
	if (ntohs(o->name_sum) != sum16(octets, len, 0))
		return "sum of the name";
	return NULL;
}

static const char *compare_message(const ldns_pkt *p, const struct stages_outcome *o)
{
	const ldns_rr *question = ldns_rr_list_rr(ldns_pkt_question(p), 0);

	if (o->qtype != (unsigned)ldns_rr_get_type(question))
		return "type";
	if (o->ad != ldns_pkt_ad(p))
		return "AD";
	if (o->edns != ldns_pkt_edns(p))
		return "presence of EDNS";
	if (o->edns_size != (o->edns ? ldns_pkt_edns_udp_size(p) : 0))
		return "EDNS payload size";
	if (o->variant != ((o->edns && ldns_pkt_edns_do(p) ? HYDNS_VARIANT_DO : 0) |
			   (ldns_pkt_rd(p) ? 0 : HYDNS_VARIANT_NO_RD)))
		return "DO or RD";
	return compare_name(ldns_rr_owner(question), o);
}

const char *oracle_judge(const uint8_t *frame, size_t len, const struct stages_settings *s,
			 const struct stages_outcome *o)
{
	struct datagram d;
	ldns_pkt *query = NULL;
	const char *why = read_datagram(frame, len, s, &d), *wrong = NULL;
	static char text[200];

	if (o->reason < 0)
		return "not counted exactly once";
	if (!why && !source_answerable(&d))
		why = "a source that can't be answered";
	if (!why)
		why = read_message(&d, s->resolver_flags, &query);
	if (why && o->reason == HYDNS_R_MISS)
		snprintf(text, sizeof(text), "the program looks up a frame with %s", why);
	else if (!why && o->reason != HYDNS_R_MISS)
		snprintf(text, sizeof(text), "an ordinary query was passed for reason %d", o->reason);
	else if (!why && ((wrong = compare_headers(&d, o)) || (wrong = compare_message(query, o))))
		snprintf(text, sizeof(text), "the program has misread: %s", wrong);
	else
		text[0] = 0;
	ldns_pkt_free(query);
	return *text ? text : NULL;
}

static void die(const char *wrong)
{
	fprintf(stderr, "oracle: %s\n", wrong);
	abort();
}

void oracle_examine(const uint8_t *frame, size_t len, const struct stages_settings *s)
{
	static struct stages_outcome first, second;
	uint8_t *exact = malloc(len ? len : 1); /* of exact size, so that the sanitizer reports any read beyond the frame */
	const char *wrong;

	memcpy(exact, frame, len);
	stages_run(exact, len, s, 0x00, &first);
	stages_run(exact, len, s, 0xff, &second);
	if (memcmp(exact, frame, len))
		die("a passed frame was changed");
	free(exact);
	if (memcmp(&first, &second, sizeof(first)))
		die("the outcome depends on what was in scratch memory");
	wrong = oracle_judge(frame, len, s, &first);
	if (wrong)
		die(wrong);
}

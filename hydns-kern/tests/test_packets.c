/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Single packets through the program by BPF_PROG_TEST_RUN: what it passes is unchanged and counted under its reason. The clock
 * is fixed at NOW_NS. NO_ROOM (the driver has no tailroom) is the one reason that a test run can't give, and ABORTED must never
 * happen. Exits 77 (skipped) where BPF programs can't be loaded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "expect.h"

/* Instructions processed; the verifier's limit is a million, but kernels differ and code grows. */
#define VERIFIER_BUDGET 500000

/* A change to the frame of q; sealed: lengths and checksums are corrected after it. */
struct change {
	const char *what;
	struct query q;
	int reason;
	bool sealed;
	void (*edit)(struct frame *f);
};

#define L3(f)  ((f)->data + (f)->l3)
#define UDP(f) ((f)->data + (f)->udp)
#define DNS(f) ((f)->data + (f)->dns)
#define EDIT(name, code) static void name(struct frame *f) { code; }

EDIT(arp, f->data[12] = 8; f->data[13] = 6)
EDIT(vlan, f->data[12] = 0x81; f->data[13] = 0)
EDIT(runt, f->len = 14)
EDIT(cut_ip, f->len = 30)
EDIT(group_mac, f->data[0] |= 1)
EDIT(group_source_mac, f->data[6] |= 1)
EDIT(tcp4, L3(f)[9] = 6)
EDIT(tcp6, L3(f)[6] = 6)
EDIT(ihl, L3(f)[0] = 0x46)
EDIT(version, L3(f)[0] = 0x65)
EDIT(more_fragments, L3(f)[6] = 0x20)
EDIT(last_fragment, L3(f)[7] = 1)
EDIT(evil_bit, L3(f)[6] = 0x80)
EDIT(ip_longer, L3(f)[3] += 1)
EDIT(ip6_longer, L3(f)[5] += 1)
EDIT(hop_by_hop, L3(f)[6] = 0)
EDIT(fragment6, L3(f)[6] = 44)
EDIT(udp_longer, UDP(f)[5] += 1)
EDIT(udp_shorter, UDP(f)[5] -= 1)
EDIT(other_address, L3(f)[19]++)
EDIT(other_address6, L3(f)[39]++)
EDIT(other_port, UDP(f)[3] = 54)
EDIT(ip_checksum, L3(f)[11]++)
EDIT(udp_checksum, UDP(f)[7]++)
EDIT(udp_unchecked, UDP(f)[6] = UDP(f)[7] = 0)
EDIT(source_zero, memset(L3(f) + 12, 0, 4))
EDIT(source_loopback, L3(f)[12] = 127)
EDIT(source_multicast, L3(f)[12] = 224)
EDIT(source_broadcast, memset(L3(f) + 12, 255, 4))
EDIT(source_itself, memcpy(L3(f) + 12, service4, 4))
EDIT(source6_zero, memset(L3(f) + 8, 0, 16))
EDIT(source6_loopback, memset(L3(f) + 8, 0, 16); L3(f)[23] = 1)
EDIT(source6_mapped, memset(L3(f) + 8, 0, 10); memset(L3(f) + 18, 255, 2))
EDIT(source6_multicast, L3(f)[8] = 0xff)
EDIT(source6_itself, memcpy(L3(f) + 8, service6, 16))
EDIT(port_zero, UDP(f)[0] = UDP(f)[1] = 0)
EDIT(port_dns, UDP(f)[0] = 0; UDP(f)[1] = 53)
EDIT(too_long, memset(f->data + f->len, 0, 600); f->len = f->dns + HYDNS_QUERY_MAX + 1)
EDIT(too_short, f->len = f->dns + 16)
EDIT(qr, DNS(f)[2] |= 0x80)
EDIT(opcode_notify, DNS(f)[2] |= 0x20)
EDIT(aa, DNS(f)[2] |= 4)
EDIT(tc, DNS(f)[2] |= 2)
EDIT(no_rd, DNS(f)[2] = 0)
EDIT(ra, DNS(f)[3] |= 0x80)
EDIT(z, DNS(f)[3] |= 0x40)
EDIT(cd, DNS(f)[3] |= 0x10)
EDIT(rcode, DNS(f)[3] |= 1)
EDIT(qdcount_0, DNS(f)[5] = 0)
EDIT(qdcount_2, DNS(f)[5] = 2)
EDIT(qdcount_257, DNS(f)[4] = 1)
EDIT(ancount, DNS(f)[7] = 1)
EDIT(nscount, DNS(f)[9] = 1)
EDIT(arcount_2, DNS(f)[11] = 2)
EDIT(arcount_256, DNS(f)[10] = 1)
EDIT(arcount_without_opt, DNS(f)[11] = 1)
EDIT(trailing, f->data[f->len++] = 0)
EDIT(label_64, DNS(f)[12] = 64)
EDIT(label_runs_out, DNS(f)[12] = 63)
EDIT(compressed, DNS(f)[16] = 0xc0)
EDIT(class_ch, DNS(f)[f->len - f->dns - 1] = 3)
EDIT(class_any, DNS(f)[f->len - f->dns - 1] = 255)
EDIT(question_cut, f->len -= 1)
#define OPT(f) (DNS(f) + (f)->len - (f)->dns - HYDNS_OPT_LEN)
EDIT(opt_not_root, OPT(f)[0] = 1)
EDIT(opt_other_type, OPT(f)[2] = 42)
EDIT(opt_rcode, OPT(f)[5] = 1)
EDIT(opt_version, OPT(f)[6] = 1)
EDIT(opt_z, OPT(f)[8] = 1)
EDIT(opt_z_high, OPT(f)[7] = 0x40)
EDIT(opt_longer, OPT(f)[10] = 1)
EDIT(opt_cut, f->len -= 1)
EDIT(opt_trailing, f->data[f->len++] = 0)

static const __u8 nsid[] = { 0, 3, 0, 0 };
static const __u8 subnet[] = { 0, 8, 0, 7, 0, 1, 24, 0, 192, 0, 2 };
static const __u8 half_option[] = { 0, 10, 0 };
static const __u8 option_runs_out[] = { 0, 10, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8 };
static const __u8 nine_options[4 * 9] = { 0 };
#define LABEL_63 "a23456789012345678901234567890123456789012345678901234567890123"
#define V6     { .ipv6 = true }
#define EDNS   { .edns = true, .edns_size = 1232 }
#define WITH(o) { .edns = true, .edns_size = 1232, .options = o, .options_len = sizeof(o) }

static const struct change changes[] = {
	{ "ARP", {}, HYDNS_R_NOT_IP, false, arp },
	{ "VLAN tag while tags are off", {}, HYDNS_R_NOT_IP, false, vlan },
	{ "Ethernet header alone", {}, HYDNS_R_FRAME_CUT, false, runt },
	{ "IP header cut", {}, HYDNS_R_FRAME_CUT, false, cut_ip },
	{ "multicast MAC", {}, HYDNS_R_GROUP_ADDRESS, true, group_mac },
	{ "multicast source MAC", {}, HYDNS_R_GROUP_ADDRESS, true, group_source_mac },
	{ "TCP", {}, HYDNS_R_NOT_UDP, true, tcp4 },
	{ "TCP, IPv6", V6, HYDNS_R_NOT_UDP, true, tcp6 },
	{ "IP options", {}, HYDNS_R_IP_UNUSUAL, true, ihl },
	{ "IP version 6 in IPv4", {}, HYDNS_R_IP_UNUSUAL, true, version },
	{ "first fragment", {}, HYDNS_R_FRAGMENT, true, more_fragments },
	{ "last fragment", {}, HYDNS_R_FRAGMENT, true, last_fragment },
	{ "reserved IP flag", {}, HYDNS_R_FRAGMENT, true, evil_bit },
	{ "IP length beyond the frame", {}, HYDNS_R_IP_LENGTH, false, ip_longer },
	{ "IPv6 length beyond the frame", V6, HYDNS_R_IP_LENGTH, false, ip6_longer },
	{ "hop-by-hop header", V6, HYDNS_R_EXTENSION_HEADER, false, hop_by_hop },
	{ "fragment header", V6, HYDNS_R_FRAGMENT, false, fragment6 },
	{ "UDP length too large", {}, HYDNS_R_UDP_LENGTH, false, udp_longer },
	{ "UDP length too small", {}, HYDNS_R_UDP_LENGTH, false, udp_shorter },
	{ "another address", {}, HYDNS_R_NOT_SERVICE, true, other_address },
	{ "another IPv6 address", V6, HYDNS_R_NOT_SERVICE, true, other_address6 },
	{ "another port", {}, HYDNS_R_NOT_SERVICE, true, other_port },
	{ "wrong IP checksum", {}, HYDNS_R_BAD_CHECKSUM, false, ip_checksum },
	{ "wrong UDP checksum", {}, HYDNS_R_BAD_CHECKSUM, false, udp_checksum },
	{ "wrong UDP checksum, IPv6", V6, HYDNS_R_BAD_CHECKSUM, false, udp_checksum },
	{ "no UDP checksum, IPv6", V6, HYDNS_R_BAD_CHECKSUM, false, udp_unchecked },
	{ "partial UDP checksum while off", {}, HYDNS_R_BAD_CHECKSUM, false, frame_partial },
	{ "source 0.0.0.0", {}, HYDNS_R_BAD_SOURCE, true, source_zero },
	{ "source 127/8", {}, HYDNS_R_BAD_SOURCE, true, source_loopback },
	{ "source multicast", {}, HYDNS_R_BAD_SOURCE, true, source_multicast },
	{ "source broadcast", {}, HYDNS_R_BAD_SOURCE, true, source_broadcast },
	{ "source is destination", {}, HYDNS_R_BAD_SOURCE, true, source_itself },
	{ "source ::", V6, HYDNS_R_BAD_SOURCE, true, source6_zero },
	{ "source ::1", V6, HYDNS_R_BAD_SOURCE, true, source6_loopback },
	{ "source IPv4-mapped", V6, HYDNS_R_BAD_SOURCE, true, source6_mapped },
	{ "source multicast, IPv6", V6, HYDNS_R_BAD_SOURCE, true, source6_multicast },
	{ "source is destination, IPv6", V6, HYDNS_R_BAD_SOURCE, true, source6_itself },
	{ "source port 0", {}, HYDNS_R_BAD_SOURCE, true, port_zero },
	{ "source port 53", {}, HYDNS_R_BAD_SOURCE, true, port_dns },
	{ "longer than the program reads", {}, HYDNS_R_TOO_LONG, true, too_long },
	{ "shorter than a question", {}, HYDNS_R_DNS_UNUSUAL, true, too_short },
	{ "a reply", {}, HYDNS_R_DNS_UNUSUAL, true, qr },
	{ "NOTIFY", {}, HYDNS_R_DNS_UNUSUAL, true, opcode_notify },
	{ "AA", {}, HYDNS_R_DNS_UNUSUAL, true, aa },
	{ "TC", {}, HYDNS_R_DNS_UNUSUAL, true, tc },
	{ "RD clear, rule for RD set", {}, HYDNS_R_MISS, true, no_rd },
	{ "RA", {}, HYDNS_R_DNS_UNUSUAL, true, ra },
	{ "Z", {}, HYDNS_R_DNS_UNUSUAL, true, z },
	{ "CD", {}, HYDNS_R_DNS_UNUSUAL, true, cd },
	{ "RCODE", {}, HYDNS_R_DNS_UNUSUAL, true, rcode },
	{ "QDCOUNT 0", {}, HYDNS_R_DNS_UNUSUAL, true, qdcount_0 },
	{ "QDCOUNT 2", {}, HYDNS_R_DNS_UNUSUAL, true, qdcount_2 },
	{ "QDCOUNT 257", {}, HYDNS_R_DNS_UNUSUAL, true, qdcount_257 },
	{ "ANCOUNT 1", {}, HYDNS_R_DNS_UNUSUAL, true, ancount },
	{ "NSCOUNT 1", {}, HYDNS_R_DNS_UNUSUAL, true, nscount },
	{ "ARCOUNT 2", EDNS, HYDNS_R_DNS_UNUSUAL, true, arcount_2 },
	{ "ARCOUNT 256", {}, HYDNS_R_DNS_UNUSUAL, true, arcount_256 },
	{ "octets after the question", {}, HYDNS_R_DNS_UNUSUAL, true, trailing },
	{ "OPT but ARCOUNT 0", {}, HYDNS_R_EDNS_UNUSUAL, true, arcount_without_opt },
	{ "label type 01", {}, HYDNS_R_QUESTION_UNUSUAL, true, label_64 },
	{ "label of 64 octets", { .name = LABEL_63 ".\1b" }, HYDNS_R_QUESTION_UNUSUAL, true, label_64 },
	{ "label longer than the message", {}, HYDNS_R_QUESTION_UNUSUAL, true, label_runs_out },
	{ "compressed name", {}, HYDNS_R_QUESTION_UNUSUAL, true, compressed },
	{ "class CH", {}, HYDNS_R_QUESTION_UNUSUAL, true, class_ch },
	{ "class ANY", {}, HYDNS_R_QUESTION_UNUSUAL, true, class_any },
	{ "question cut", {}, HYDNS_R_QUESTION_UNUSUAL, true, question_cut },
	{ "type ANY", { .qtype = 255 }, HYDNS_R_TYPE_ANY, true, NULL },
	{ "type AXFR", { .qtype = 252 }, HYDNS_R_QUESTION_UNUSUAL, true, NULL },
	{ "type TKEY", { .qtype = 249 }, HYDNS_R_QUESTION_UNUSUAL, true, NULL },
	{ "type NXNAME", { .qtype = 128 }, HYDNS_R_QUESTION_UNUSUAL, true, NULL },
	{ "type OPT", { .qtype = 41 }, HYDNS_R_QUESTION_UNUSUAL, true, NULL },
	{ "OPT below another name", EDNS, HYDNS_R_EDNS_UNUSUAL, true, opt_not_root },
	{ "additional record other than OPT", EDNS, HYDNS_R_EDNS_UNUSUAL, true, opt_other_type },
	{ "extended RCODE", EDNS, HYDNS_R_EDNS_UNUSUAL, true, opt_rcode },
	{ "EDNS version 1", EDNS, HYDNS_R_EDNS_UNUSUAL, true, opt_version },
	{ "EDNS Z bit", EDNS, HYDNS_R_EDNS_UNUSUAL, true, opt_z },
	{ "EDNS flag beside DO", EDNS, HYDNS_R_EDNS_UNUSUAL, true, opt_z_high },
	{ "OPT longer than the message", EDNS, HYDNS_R_EDNS_UNUSUAL, true, opt_longer },
	{ "OPT cut", EDNS, HYDNS_R_EDNS_UNUSUAL, true, opt_cut },
	{ "octets after OPT", EDNS, HYDNS_R_EDNS_UNUSUAL, true, opt_trailing },
	{ "option NSID", WITH(nsid), HYDNS_R_EDNS_UNUSUAL, true, NULL },
	{ "option CLIENT-SUBNET", WITH(subnet), HYDNS_R_EDNS_UNUSUAL, true, NULL },
	{ "half an option", WITH(half_option), HYDNS_R_EDNS_UNUSUAL, true, NULL },
	{ "option longer than OPT", WITH(option_runs_out), HYDNS_R_EDNS_UNUSUAL, true, NULL },
	{ "nine options", WITH(nine_options), HYDNS_R_EDNS_UNUSUAL, true, NULL },
	{ "another name", { .name = "www.example.net" }, HYDNS_R_MISS, true, NULL },
	{ "another type", { .qtype = 28 }, HYDNS_R_MISS, true, NULL },
	{ "type above the meta types", { .qtype = 257 }, HYDNS_R_MISS, true, NULL },
};

static void test_passes(void **state)
{
	struct answer a = { 0 };
	struct frame f;
	__u32 handle;

	(void)state;
	handle = publish_address(kern, &plain, &a);
	expect_answer("the plain query, whose service is then cached", &plain, &a, 0);
	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
		struct query q = changes[i].q;

		q.name = q.name ? q.name : plain.name;
		q.qtype = q.qtype ? q.qtype : plain.qtype;
		frame_query(&f, &q);
		if (changes[i].edit)
			changes[i].edit(&f);
		if (changes[i].sealed)
			frame_seal(&f);
		expect_pass(changes[i].what, kern, &f, changes[i].reason);
	}
	expect_answer("the plain query again", &plain, &a, 0);
	kernel_remove(kern, handle);
}

static void test_verifier_budget(void **state)
{
	const struct kernel_options all = {
		.vlan = true, .fib = true, .partial_checksum = true, .verbose = true, .miss_stage = true, .forward = true, .queue = true,
		.monitor = true, .names = true, .logs = true, .guard.mode = HYDNS_GUARD_ENFORCE,
	};
	struct kernel *k;
	const char *why;
	struct frame f;

	(void)state;
	assert_in_range(kernel_verified(kern), 1, VERIFIER_BUDGET);
	k = kernel_open(&all, &why);
	assert_non_null(k);
	frame_query(&f, &plain);
	kernel_dry(k, &f);
	assert_in_range(kernel_verified(k), 1, VERIFIER_BUDGET);
	assert_in_range(kernel_dry_verified(k), 1, VERIFIER_BUDGET);
	kernel_close(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_passes),
		cmocka_unit_test(test_verifier_budget),
	};

	return expect_run(tests);
}

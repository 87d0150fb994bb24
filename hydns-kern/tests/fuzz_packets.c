/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Mutated queries against the XDP program. For any input: a passed packet is unchanged, nothing is dropped, and every packet is
 * counted once. What the program answers is an ordinary query for ldns, too, and the reply is, octet by octet, the message of
 * the rule for its name, type and variant. ldns can read the reply.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <linux/bpf.h>
#include "feed.h"
/* after <stdbool.h>, or ldns defines its own bool */
#include <ldns/ldns.h>

#define SKIPPED        77
#define SHARE_IN_CHECK 100000
#define MUTATIONS      4
#define RULES          40
#define AGE_S          7

struct known {
	char name[HYDNS_NAME_MAX];
	struct query q;
	struct answer a;
	uint32_t handle;
	uint32_t rotation;       /* of the next answer */
};

static struct known known[RULES];
static uint64_t state;

/* xorshift64* (Vigna 2016): fast, and gives the same numbers everywhere for a seed. */
static uint32_t rnd(uint32_t below)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (uint32_t)((state * 0x2545f4914f6cdd1dULL) >> 32) % below;
}

/* --- rules ---------------------------------------------------------------------------------------- */
static void make_name(char *out, unsigned i)
{
	unsigned labels = 1 + i % 4;

	out += sprintf(out, "n%u", i);
	for (unsigned l = 0; l < labels; l++)
		out += sprintf(out, ".%.*s", 1 + (int)rnd(l == 3 ? 60 : 12),
			       "label-of-some-length-to-fill-every-class-of-slots-in-the-store");
}

static void make_rule(struct known *k, unsigned i)
{
	static const uint8_t errors[] = "\0\17\0\2\0\26" "\0\17\0\24\0\6signatures expired";
	static const uint8_t soa[] = "\2ns\xc0\x0c\4root\xc0\x0c\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0\5";
	uint8_t text[800];

	memset(text, 99, sizeof(text));
	make_name(k->name, i);
	k->q = (struct query){ .name = k->name, .qtype = 1, .edns = i & 1, .want_do = (i & 3) == 3,
			      .norec = (i & 12) == 12 };
	k->a.secure = i & 4;
	if (i % 5 == 0 && i % 6 != 2) {      /* not behind a long answer */
		k->a.errors = errors;
		k->a.errors_len = sizeof(errors) - 1;
	}
	k->a.static_ttl = !(i % 7);
	switch (i % 6) {
	case 0:
		answer_addresses(&k->a, 1 + i % 6, 300);
		break;
	case 1:
		answer_add(&k->a, ANSWER, NULL, 5, 60, "\1c\xc0\x0c", 4);
		answer_addresses(&k->a, 2, 300);
		break;
	case 2:
		k->q.qtype = 16;
		/* strings of 100 octets; eight of them do not fit without EDNS */
		answer_add(&k->a, ANSWER, NULL, 16, 1000, text, 100 * (1 + rnd(8)));
		break;
	case 3:
		k->a.flags = REPLY_FLAGS | 3;
		answer_add(&k->a, AUTHORITY, NULL, 6, 30, soa, sizeof(soa) - 1);
		break;
	case 4:
		k->q.qtype = 16;
		for (unsigned r = 0; r < 3; r++) {
			text[0] = rnd(40);
			answer_add(&k->a, ANSWER, NULL, 16, 500 + r, text, 1 + text[0]);
		}
		answer_rotates(&k->a, 3);
		break;
	default:
		k->q.qtype = 28;
		answer_add(&k->a, ANSWER, NULL, 28, 86400, service6, 16);
	}
}

static struct known *rule_of(const uint8_t *name, size_t len, uint16_t qtype, bool want_do, bool norec)
{
	for (unsigned i = 0; i < RULES; i++) {
		uint8_t wire[HYDNS_NAME_MAX + 1];

		if (known[i].q.qtype == qtype && known[i].q.want_do == want_do && known[i].q.norec == norec &&
		    name_wire(known[i].name, wire) == len &&
		    !strncasecmp((const char *)wire, (const char *)name, len))
			return &known[i];
	}
	return NULL;
}

/* --- packets ---------------------------------------------------------------------------------------- */
static void make_query(struct frame *f)
{
	static uint8_t options[32];
	char name[HYDNS_NAME_MAX];
	struct query q = known[rnd(RULES)].q;

	strcpy(name, q.name);
	for (char *p = name; *p; p++)
		if (*p >= 'a' && *p <= 'z' && rnd(2))
			*p -= 'a' - 'A';
	q.name = name;
	q.id = rnd(65536);
	q.ipv6 = rnd(2);
	q.ad = rnd(2);
	if (!q.want_do)
		q.edns = rnd(2);
	q.edns_size = rnd(2) ? 1232 : rnd(65536);
	if (q.edns && rnd(2)) {
		options[1] = 10;
		options[3] = 4 * rnd(7);
		q.options = options;
		q.options_len = 4 + options[3];
	}
	frame_query(f, &q);
}

/* A random offset in the frame, mostly in the message. */
static size_t random_offset(const struct frame *f)
{
	return rnd(4) ? f->dns + rnd(f->len - f->dns) : rnd(f->len);
}

static void mutate(struct frame *f)
{
	static const uint8_t special[] = { 0, 1, 41, 53, 63, 64, 0x7f, 0x80, 0xc0, 0xff };
	size_t at = random_offset(f), n = 1 + rnd(8);

	switch (rnd(7)) {
	case 0:
		f->data[at] ^= 1 << rnd(8);
		break;
	case 1:
		f->data[at] = rnd(256);
		break;
	case 2:
		f->data[at] = special[rnd(sizeof(special))];
		break;
	case 3: /* remove octets */
		if (at + n < f->len && f->len - n > f->dns + 1) {
			memmove(f->data + at, f->data + at + n, f->len - at - n);
			f->len -= n;
		}
		break;
	case 4: /* insert octets */
		memmove(f->data + at + n, f->data + at, f->len - at);
		f->len += n;
		break;
	case 5: /* cut the end off */
		if (f->len > f->dns + 1)
			f->len -= rnd(f->len - f->dns - 1);
		break;
	default: /* append octets */
		n = rnd(20) ? n : rnd(700);
		memset(f->data + f->len, rnd(256), n);
		f->len += n;
	}
}

/* --- checks of an outcome ------------------------------------------------------------------------------- */
static const char *judge_query(const struct frame *f, ldns_pkt **query)
{
	size_t udp_len = f->data[f->udp + 4] << 8 | f->data[f->udp + 5];
	ldns_pkt *p;

	if (udp_len < 8 || f->udp + udp_len > f->len)
		return "UDP length beyond the frame";
	if (ldns_wire2pkt(query, f->data + f->dns, udp_len - 8) != LDNS_STATUS_OK) {
		*query = NULL;
		return "a query that ldns calls malformed";
	}
	p = *query;
	if (ldns_pkt_qr(p) || ldns_pkt_get_opcode(p) != LDNS_PACKET_QUERY || ldns_pkt_aa(p) || ldns_pkt_tc(p) ||
	    ldns_pkt_ra(p) || ldns_pkt_cd(p) || ldns_pkt_get_rcode(p))
		return "a query with unusual flags";
	if (ldns_pkt_qdcount(p) != 1 || ldns_pkt_ancount(p) || ldns_pkt_nscount(p) ||
	    ldns_rr_list_rr_count(ldns_pkt_additional(p)))
		return "a query with more than a question and OPT";
	if (ldns_rr_get_class(ldns_rr_list_rr(ldns_pkt_question(p), 0)) != LDNS_RR_CLASS_IN)
		return "a query of another class";
	if (ldns_pkt_edns(p) && (ldns_pkt_edns_version(p) || ldns_pkt_edns_extended_rcode(p) ||
				 (ldns_pkt_edns_z(p) & 0x7fff)))
		return "a query with unusual EDNS";
	return NULL;
}

static const char *judge_reply(const struct frame *f, const struct frame *reply, ldns_pkt *query)
{
	ldns_rr *question = ldns_rr_list_rr(ldns_pkt_question(query), 0);
	uint8_t want[FRAME_MAX], asked[HYDNS_NAME_MAX];
	struct known *k;
	struct query q;
	size_t name_len = ldns_rdf_size(ldns_rr_owner(question)), len;
	ldns_pkt *answer;

	memcpy(asked, f->data + f->dns + 12, name_len);
	k = rule_of(asked, name_len, ldns_rr_get_type(question), ldns_pkt_edns_do(query), !ldns_pkt_rd(query));
	if (!k)
		return "an answer to a question without a rule";
	q = k->q;
	q.id = ldns_pkt_id(query);
	q.ad = ldns_pkt_ad(query);
	q.edns = ldns_pkt_edns(query);
	len = answer_message(&k->a, &q, AGE_S, k->rotation, EDNS_SIZE, want);
	memcpy(want + 12, asked, name_len);
	if (reply->len - reply->dns != len || memcmp(reply->data + reply->dns, want, len))
		return "a message other than the rule's";
	if (len > 512 && (!q.edns || len > ldns_pkt_edns_udp_size(query)))
		return "a message larger than the client accepts";
	if (ldns_wire2pkt(&answer, reply->data + reply->dns, len) != LDNS_STATUS_OK)
		return "a message that ldns calls malformed";
	ldns_pkt_free(answer);
	return NULL;
}

/* NULL, or what the program did wrong with f. */
static const char *judge(const struct frame *f, const struct frame *got, int action)
{
	struct frame reply = *got;
	ldns_pkt *query = NULL;
	const char *wrong;

	if (action == XDP_PASS)
		return got->len == f->len && !memcmp(got->data, f->data, f->len) ? NULL : "a passed packet changed";
	if (action != XDP_TX)
		return "neither passed nor answered";
	/* A mutation may have changed the EtherType; check the reply by the one that it has. */
	reply.ipv6 = got->data[12] == 0x86;
	if (reply.ipv6 != f->ipv6)
		return "an answer to the wrong IP version";
	wrong = frame_wrong(&reply);
	if (!wrong)
		wrong = judge_query(f, &query);
	if (!wrong)
		wrong = judge_reply(f, &reply, query);
	ldns_pkt_free(query);
	return wrong;
}

static void dump(const char *what, const struct frame *f)
{
	printf("%s (%zu octets):", what, f->len);
	for (size_t i = 0; i < f->len; i++)
		printf("%s%02x", i % 32 ? "" : "\n  ", f->data[i]);
	printf("\n");
}

/* --- the run -------------------------------------------------------------------------------------------- */
static int prepare(struct kernel *k)
{
	struct hydns_resolver_config c = {
		.flags = HYDNS_RESOLVER_READY | HYDNS_RESOLVER_IGNORES_COOKIE | HYDNS_RESOLVER_ROTATES,
		.edns_size = EDNS_SIZE, .max_udp = EDNS_SIZE, .acl_half = 1,
	};

	kernel_config(k, &c);
	for (unsigned i = 0; i < RULES; i++) {
		make_rule(&known[i], i);
		known[i].handle = kernel_publish(k, &known[i].q, &known[i].a, AGE_S * 1000000000ULL, NULL);
		if (!known[i].handle) {
			printf("rule %u (%s) could not be published\n", i, known[i].name);
			return -1;
		}
	}
	return 0;
}

static int one(struct kernel *k, uint64_t number, uint64_t *answered)
{
	static struct frame f, g;
	const char *wrong;
	int action;

	make_query(&f);
	for (unsigned i = rnd(MUTATIONS + 1); i; i--)
		mutate(&f);
	if (rnd(8))
		frame_seal(&f);
	g = f;
	for (unsigned i = 0; i < RULES; i++)
		known[i].rotation = kernel_rotation(k, known[i].handle);
	action = kernel_shoot(k, &g);
	*answered += action == XDP_TX;
	wrong = judge(&f, &g, action);
	if (!wrong)
		return 0;
	printf("packet %" PRIu64 ": %s (action %d)\n", number, wrong, action);
	dump("query", &f);
	dump("after", &g);
	return -1;
}

static int run(struct kernel *k, uint64_t count)
{
	uint64_t answered = 0, counted = 0;
	__u64 reasons[HYDNS_REASONS];

	for (uint64_t i = 0; i < count; i++)
		if (one(k, i, &answered))
			return 1;
	kernel_reasons(k, reasons);
	for (int r = 0; r < HYDNS_REASONS; r++) {
		printf("  %12llu %s\n", (unsigned long long)reasons[r], hydns_reason_name((enum hydns_reason)r));
		counted += reasons[r];
	}
	if (counted != count || reasons[HYDNS_R_ANSWERED] != answered || reasons[HYDNS_R_ABORTED]) {
		printf("counters do not add up: %" PRIu64 " packets, %" PRIu64 " answered\n", count, answered);
		return 1;
	}
	printf("%" PRIu64 " packets, %" PRIu64 " answered, nothing wrong\n", count, answered);
	return !answered;
}

static int usage(void)
{
	fprintf(stderr, "usage: fuzz_packets [--count N] [--seed S]\n"
			"       fuzz_packets --stdin [--seed S]\n"
			"Sends N mutated queries (default %d) through the XDP program and checks each outcome.\n"
			"The same seed (default 1) gives the same packets and the same rules. Needs root.\n"
			"With --stdin, another program makes the frames and checks the outcomes: see feed.h.\n",
		SHARE_IN_CHECK);
	return 2;
}

static int run_stdin(struct kernel *k)
{
	for (unsigned i = 0; i < RULES; i++)
		feed_rule(&known[i].q);
	return feed(k);
}

static bool number(const char *text, uint64_t *out)
{
	char *end;

	*out = strtoull(text, &end, 0);
	return *text && !*end && *out;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "count", required_argument, NULL, 'c' }, { "seed", required_argument, NULL, 's' },
		{ "stdin", no_argument, NULL, 'i' }, { 0 },
	};
	uint64_t count = SHARE_IN_CHECK, seed = 1;
	bool fed = false;
	struct kernel *k;
	const char *why;
	int o, status;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (o == 'i')
			fed = true;
		else if ((o != 'c' && o != 's') || !number(optarg, o == 'c' ? &count : &seed))
			return usage();
	}
	if (optind != argc)
		return usage();
	state = seed;
	k = kernel_open(&(struct kernel_options){ 0 }, &why);
	if (!k) {
		fprintf(stderr, "skipped: %s\n", why);
		return SKIPPED;
	}
	if (!fed)
		printf("fuzz_packets --count %" PRIu64 " --seed %" PRIu64 "\n", count, seed);
	status = prepare(k) ? 1 : fed ? run_stdin(k) : run(k, count);
	kernel_close(k);
	return status;
}

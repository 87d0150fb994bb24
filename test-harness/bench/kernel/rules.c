/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <arpa/inet.h>
#include "hydns/cookie.h"
#include "test-harness/bench/kernel/rules.h"

#define TYPE_A        1
#define TYPE_AAAA     28
#define TTL           86400
#define EDNS_PAYLOAD  1232
#define COOKIE_OPTION 10
#define COOKIE_SET    1
#define NAME_TEXT     256
#define LABEL_MOST    63
#define CAPACITY_MOST (1U << 26)

static const struct hydns_cookies secrets = {
	.set = COOKIE_SET, .count = 1, .secret = { { 0x0123456789abcdefULL, 0xfedcba9876543210ULL } },
};

const char *questions_wrong(const struct questions *a)
{
	if (!a->rules || a->rules > 1U << 26)
		return "--rules: 1 to 67108864";
	if (a->capacity && a->capacity < a->rules)
		return "--capacity: not less than --rules";
	if (a->octets < OCTETS_LEAST || a->octets > HYDNS_NAME_MAX)
		return "--octets: 12 to 255";
	if (a->type != TYPE_A && a->type != TYPE_AAAA)
		return "--type: A or AAAA";
	if (!a->port || a->port > 65535)
		return "--port: 1 to 65535";
	if (!a->records || a->records > HYDNS_TTLS_MAX)
		return "--records: 1 to 32";
	return NULL;
}

/* Label number n, then labels as long as can be, so that the whole has the octets asked for. */
static void name_of(const struct questions *a, __u32 n, char text[NAME_TEXT])
{
	__u64 label = pace_label(n);
	unsigned left = a->octets - 1 - (1 + PACE_LABEL);
	char *p = text;

	memcpy(p, &label, PACE_LABEL);
	p += PACE_LABEL;
	while (left) {
		unsigned len = left > LABEL_MOST + 1 ? LABEL_MOST : left - 1;

		if (left - (len + 1) == 1) /* no room for a label would be left */
			len--;
		*p++ = '.';
		memset(p, 'x', len);
		p += len;
		left -= len + 1;
	}
	*p = 0;
}

static struct query query_of(const struct questions *a, const char *name)
{
	return (struct query){
		.name = name, .qtype = a->type, .id = 0x4711, .ipv6 = a->ipv6,
		.edns = a->edns || a->dnssec || a->cookie, .want_do = a->dnssec, .edns_size = EDNS_PAYLOAD,
	};
}

static void answer_of(const struct questions *a, struct answer *out)
{
	memset(out, 0, sizeof(*out));
	out->account = a->rates ? HYDNS_RATE_ACCOUNT(HYDNS_RATE_ANSWER, 1, a->type, 1) : 0;
	if (a->type == TYPE_A) {
		answer_addresses(out, a->records, TTL);
		return;
	}
	for (unsigned i = 0; i < a->records; i++)
		answer_add(out, ANSWER, NULL, TYPE_AAAA, TTL,
			   (uint8_t[16]){ 0x20, 0x01, 0x0d, 0xb8, [15] = i + 1 }, 16);
	if (a->records > 1)
		answer_rotates(out, a->records);
}

static __u32 publish(struct kernel *k, const struct questions *a, const struct answer *answer, __u32 number)
{
	char name[NAME_TEXT];
	struct query q = query_of(a, name);

	name_of(a, number, name);
	return kernel_publish(k, &q, answer, 0, NULL);
}

void rule_parts(struct kernel *k, const struct questions *a, struct answer *answer, __u8 *name,
		struct hydns_rule_parts *p)
{
	const struct hydns_rule *rule;
	__u32 handle;

	answer_of(a, answer);
	handle = publish(k, a, answer, ~0U); /* a rule of the same make, to copy from; none has this number */
	rule = hydns_store_rule(kernel_store(k), handle);
	*p = (struct hydns_rule_parts){ .name = name, .answer = answer->data, .ttl = answer->ttl };
	memcpy(&p->head, rule, HYDNS_RULE_DATA);
	memcpy(p->rotation, answer->rotation, sizeof(p->rotation));
	memcpy(name, rule->data, rule->name_len);
	kernel_remove(k, handle);
}

/* Every number below rules once, in an order that has nothing to do with how often it is asked for: a slot's
 * place must not depend on its popularity. */
static bool publish_all(struct kernel *k, const struct questions *a)
{
	struct answer answer;
	__u32 size = 1;

	answer_of(a, &answer);
	while (size < a->rules)
		size *= 2;
	for (__u32 i = 0; i < size; i++) {
		__u32 n = (i * 2654435761U) & (size - 1);

		if (n < a->rules && !publish(k, a, &answer, n))
			return false;
	}
	return true;
}

static void answer_cookies(struct kernel *k)
{
	struct hydns_resolver_config c = {
		.flags = HYDNS_RESOLVER_READY | HYDNS_RESOLVER_ROTATES | HYDNS_RESOLVER_ALLOWS_IPV4 |
			 HYDNS_RESOLVER_ALLOWS_IPV6, .edns_size = EDNS_SIZE, .max_udp = 4096, .acl_half = 1,
	};

	kernel_cookies(k, COOKIE_SET, &secrets);
	kernel_page(k)->cookies = COOKIE_SET;
	kernel_config(k, &c);
}

#define NO_LIMIT 100000000U
static const struct hydns_loader_guard guards[] = {
	[true] = { .mode = HYDNS_GUARD_ENFORCE, .queries = NO_LIMIT, .exempt = 1, .ipv4_prefix = 24, .ipv6_prefix = 56 },
};

/* Rules that are all of one size fill one class of slots, and the larger ones, long before the store is full. */
struct kernel *rules_open(const struct questions *a, const char **why)
{
	for (__u64 capacity = a->capacity ? a->capacity : a->rules; capacity < CAPACITY_MOST; capacity *= 2) {
		struct kernel *k = kernel_open(&(struct kernel_options){
			.real_clock = true, .partial_checksum = true, .capacity = capacity, .miss_stage = a->miss_stage,
			.monitor = a->monitor, .logs = a->rates, .guard = guards[a->guard] }, why);

		if (!k)
			return NULL;
		answer_cookies(k);
		if (publish_all(k, a))
			return k;
		kernel_close(k);
	}
	*why = "the store had no room for all rules";
	return NULL;
}

void rules_sweep(struct kernel *k)
{
	struct hydns_store *s = kernel_store(k);

	for (__u32 h = hydns_store_next(s, 0); h; h = hydns_store_next(s, h)) {
		const struct hydns_rule *rule = hydns_store_rule(s, h);

		if ((__s16)(rule->hits_end - rule->hits) > 0)
			hydns_store_count_in_slot(s, h);
	}
}

static void make_cookie(bool ipv6, __u8 option[4 + HYDNS_COOKIE_LEN])
{
	__u8 addr[16] __attribute__((aligned(8))) = { [10] = 0xff, [11] = 0xff };
	const struct hydns_cookie_client c = { .addr = addr, .ipv6 = ipv6 };
	__u64 cookie[HYDNS_COOKIE_WORDS] = { 0x0807060504030201ULL };

	if (ipv6)
		memcpy(addr, client6, 16);
	else
		memcpy(addr + 12, client4, 4);
	hydns_cookie_make(secrets.secret[0], cookie, &c, (__u32)time(NULL));
	memcpy(option, (__u8[]){ 0, COOKIE_OPTION, 0, HYDNS_COOKIE_LEN }, 4);
	memcpy(option + 4, cookie, HYDNS_COOKIE_LEN);
}

void question_template(const struct questions *a, struct pace_template *t)
{
	__u8 option[4 + HYDNS_COOKIE_LEN];
	struct query q;
	struct frame f;
	char name[NAME_TEXT];

	name_of(a, 0, name);
	q = query_of(a, name);
	if (a->cookie) {
		make_cookie(a->ipv6, option);
		q.options = option;
		q.options_len = sizeof(option);
	}
	frame_query(&f, &q);
	t->len = f.len;
	t->label_at = f.dns + 12 + 1;
	t->check_at = f.udp + 6;
	f.data[f.udp + 2] = a->port >> 8;
	f.data[f.udp + 3] = a->port;
	memset(f.data + t->label_at, 0, PACE_LABEL);
	frame_seal(&f);
	memcpy(t->frame, f.data, f.len);
	memcpy(&t->check, f.data + t->check_at, sizeof(t->check));
}

/* SPDX-License-Identifier: GPL-2.0-only */
/* One rule's content: writing it into a slot, reading it, checking it. */
#include <arpa/inet.h>
#include <stddef.h>
#include <string.h>
#include "hydns/dns.h"
#include "hydns/hash.h"
#include "hydns/names.h"
#include "hydns-kern/store/rule.h"

#define LABEL_MAX 63
#define OPTION_HEAD 4                    /* code and length */
#define ERROR_LEAST 2                    /* octets of an extended error: its code */

static const __u8 class_in[2] = { 0, 1 };

const __u8 *hydns_rule_name(const struct hydns_rule *r)
{
	return r->data;
}

const __u8 *hydns_rule_answer(const struct hydns_rule *r)
{
	return r->data + r->name_len + 4;
}

/* What one TTL field adds to the sum of native 32-bit words. */
static __u64 ttl_contribution(const __u8 *answer, __u16 offset)
{
	__u8 field[8] = { 0 };
	__u32 word[2];

	memcpy(field + offset % 4, answer + offset, 4);
	memcpy(word, field, sizeof(word));
	return (__u64)word[0] + word[1];
}

/* Each word is below 2^32 and an answer has at most 2^14 of them: 64 bits don't overflow, and subtracting the TTLs is
 * exact, without the two zeros of one's complement. */
__u16 hydns_answer_sum(const __u8 *answer, __u16 len, const __u16 *ttl, unsigned ttl_count)
{
	__u64 sum = 0;
	__u32 word;
	unsigned i;

	for (i = 0; i + 4 <= len; i += 4) {
		memcpy(&word, answer + i, 4);
		sum += word;
	}
	if (i < len) {
		word = 0;
		memcpy(&word, answer + i, len - i);
		sum += word;
	}
	for (i = 0; i < ttl_count; i++)
		sum -= ttl_contribution(answer, ttl[i]);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (__u16)sum;
}

/* Wire format without compression, lower case, ending exactly at len. */
static bool name_valid(const __u8 *name, __u8 len)
{
	unsigned at = 0;

	while (at < len && name[at]) {
		unsigned end = at + 1 + name[at];

		if (name[at] > LABEL_MAX || end >= len)
			return false;
		for (at++; at < end; at++)
			if (name[at] >= 'A' && name[at] <= 'Z')
				return false;
	}
	return at + 1 == len;
}

size_t hydns_left_out_length(const __u8 *block, size_t room)
{
	unsigned names = room ? block[0] : 0;
	size_t at = 1;

	if (names == 0)
		return 0;
	for (; names; names--) {
		size_t start = at;

		while (at < room && block[at] && block[at] <= LABEL_MAX)
			at += 1U + block[at];
		at++;
		if (at > room || at - start > HYDNS_NAME_MAX || !name_valid(block + start, (__u8)(at - start)))
			return 0;
	}
	return at;
}

/* Where in the slot the places begin. */
static __u32 places_at(const struct hydns_rule *r)
{
	return HYDNS_RULE_ROTATIONS(r->name_len, r->answer_len, r->ttl_count) + r->rotation_count * HYDNS_ROTATION_LEN;
}

/* Where the account begins, if there is one. */
static __u32 account_at(const struct hydns_rule *r)
{
	return places_at(r) + r->place_count * (__u32)sizeof(__u16);
}

__u64 hydns_rule_account(const struct hydns_rule *r)
{
	__u64 account = 0;

	memcpy(&account, (const __u8 *)r + account_at(r), HYDNS_ACCOUNT_LEN(r->flags));
	return account;
}

static __u32 pointers_at(const struct hydns_rule *r)
{
	return account_at(r) + HYDNS_ACCOUNT_LEN(r->flags);
}

const struct hydns_pointers *hydns_rule_pointers(const struct hydns_rule *r)
{
	return r->flags & HYDNS_RULE_TEMPLATE ? (const void *)((const __u8 *)r + pointers_at(r)) : NULL;
}

const struct hydns_gap *hydns_rule_gap(const struct hydns_rule *r)
{
	const struct hydns_pointers *p = hydns_rule_pointers(r);

	return p && (p->count & HYDNS_POINTERS_GAP) ? (const void *)&p->at[HYDNS_POINTERS_COUNT(p->count)] : NULL;
}

/* Where the extended errors begin, if there are any. */
static __u32 errors_at(const struct hydns_rule *r)
{
	const struct hydns_pointers *p = hydns_rule_pointers(r);

	return pointers_at(r) + (p ? HYDNS_POINTERS_LEN(p->count) : 0);
}

const struct hydns_errors *hydns_rule_errors(const struct hydns_rule *r)
{
	return r->flags & HYDNS_RULE_ERRORS ? (const void *)((const __u8 *)r + errors_at(r)) : NULL;
}

static __u32 left_out_at(const struct hydns_rule *r)
{
	const struct hydns_errors *e = hydns_rule_errors(r);

	return errors_at(r) + (e ? HYDNS_ERRORS_HEAD + e->len : 0);
}

const __u8 *hydns_rule_left_out(const struct hydns_rule *r)
{
	return r->flags & HYDNS_RULE_LEFT_OUT ? (const __u8 *)r + left_out_at(r) : NULL;
}

static unsigned number16(const __u8 *p)
{
	return (unsigned)p[0] << 8 | p[1];
}

bool hydns_errors_valid(const __u8 *options, size_t len)
{
	size_t at = 0;

	if (len > HYDNS_ERRORS_MOST)
		return false;
	while (len - at >= OPTION_HEAD + ERROR_LEAST && number16(options + at) == HYDNS_OPTION_ERROR &&
	       number16(options + at + 2) >= ERROR_LEAST) {
		at += OPTION_HEAD + number16(options + at + 2);
		if (at >= len)
			return at == len;
	}
	return false;
}

struct hydns_rotation hydns_rule_rotation(const struct hydns_rule *r, unsigned i)
{
	struct hydns_rotation g;

	memcpy(&g, (const __u8 *)r + HYDNS_RULE_ROTATIONS(r->name_len, r->answer_len, r->ttl_count) + i * sizeof(g),
	       sizeof(g));
	return g;
}

__u16 hydns_rule_place(const struct hydns_rule *r, unsigned i)
{
	__u16 place;

	memcpy(&place, (const __u8 *)r + places_at(r) + i * sizeof(place), sizeof(place));
	return place;
}

static bool ttls_valid(const __u16 *ttl, unsigned count, __u16 answer_len)
{
	unsigned least = 0;

	for (unsigned i = 0; i < count; i++) {
		if (ttl[i] < least || ttl[i] + 4U > answer_len)
			return false;
		least = ttl[i] + 4U;
	}
	return true;
}

/* A rotation moves whole RRs, whose TTLs are among the rule's. */
static bool rotations_valid(const struct hydns_rule *r, const struct hydns_rotation *o, const __u16 *ttl)
{
	for (unsigned i = 0; i < r->rotation_count; i++, o++)
		if (o->first >= o->last || o->last >= r->ttl_count || o->start + o->len > r->answer_len ||
		    ttl[o->first] < o->start || ttl[o->last] >= o->start + o->len)
			return false;
	return true;
}

/* The fields that can be checked without the rest of the rule. */
static bool head_valid(const struct hydns_rule *r)
{
	const __u8 variants = r->flags & HYDNS_RULE_TEMPLATE ? HYDNS_VARIANT_TEMPLATE : 0;

	return r->name_len && (r->variant & ~HYDNS_VARIANTS) == variants && r->resolver < HYDNS_RESOLVERS &&
	       r->ttl_count <= HYDNS_TTLS_MAX && r->rotation_count <= HYDNS_ROTATIONS_MAX &&
	       r->place_count <= HYDNS_RULE_PLACES_MAX;
}

static bool places_valid(const __u16 *place, unsigned count)
{
	while (count--)
		if (place[count] >= HYDNS_PLACES)
			return false;
	return true;
}

static bool errors_valid(const struct hydns_rule_parts *p)
{
	if (!(p->head.flags & HYDNS_RULE_ERRORS))
		return p->errors_len == 0;
	return pointers_at(&p->head) <= HYDNS_ERRORS_AT_MOST && hydns_errors_valid(p->errors, p->errors_len);
}

/* Each is two octets of the answer, and none of them a TTL's. */
static bool offsets_valid(const struct hydns_rule *r, const __u16 *pointer, unsigned count, const __u16 *ttl)
{
	unsigned least = 0, next = 0;

	for (unsigned i = 0; i < count; i++) {
		if (pointer[i] < least || pointer[i] + 2U > r->answer_len)
			return false;
		least = pointer[i] + 2U;
		while (next < r->ttl_count && ttl[next] + 4U <= pointer[i])
			next++;
		if (next < r->ttl_count && ttl[next] < least)
			return false;
	}
	return true;
}

static bool is_template_of_names(const struct hydns_rule *r, const __u8 *name)
{
	__u8 hash[HYDNS_SHA1_OCTETS];

	if (r->qtype == htons(HYDNS_HASHED_TYPE))
		return hydns_is_hashed_name(name, r->name_len, hash);
	return r->qtype == htons(HYDNS_BELOW_TYPE) && hydns_is_below_name(name, r->name_len);
}

/* Whether so many octets from there on are of the answer, behind the first of them that may be. *least: from then on, the next one. */
static bool is_part(const struct hydns_rule *r, unsigned at, unsigned len, unsigned *least)
{
	const bool is = at >= *least && at + len <= r->answer_len;

	*least = at + len;
	return is;
}

/* NULL: there is none. */
static bool gap_valid(const struct hydns_rule *r, const struct hydns_gap *g)
{
	unsigned least = 0;

	return !g || ((g->id[0] | g->id[1] | g->id[2] | g->id[3]) && is_part(r, g->numbers, HYDNS_SOA_NUMBERS, &least) &&
		      (!g->signature_len ||
		       (g->signature_len <= HYDNS_SIGNATURE_MOST && is_part(r, g->fixed, HYDNS_RRSIG_FIXED, &least) &&
			is_part(r, g->signature, g->signature_len, &least))));
}

static bool is_template(const struct hydns_rule *r, const __u8 *name, unsigned pointers)
{
	return !(r->flags & HYDNS_RULE_ERRORS) && (hydns_denies_types(ntohs(r->qtype)) || is_template_of_names(r, name)) &&
	       pointers <= HYDNS_POINTERS_MOST && pointers_at(r) <= HYDNS_POINTERS_AT_MOST && r->answer_len <= HYDNS_BELOW_ANSWER_MOST;
}

static bool pointers_valid(const struct hydns_rule_parts *p)
{
	if (!(p->head.flags & HYDNS_RULE_TEMPLATE))
		return p->pointer_count == 0 && !p->gap;
	return gap_valid(&p->head, p->gap) && is_template(&p->head, p->name, p->pointer_count) &&
	       offsets_valid(&p->head, p->pointer, p->pointer_count, p->ttl);
}

static bool left_out_valid(const struct hydns_rule_parts *p)
{
	if (!(p->head.flags & HYDNS_RULE_LEFT_OUT))
		return p->left_out_len == 0;
	return p->left_out_len && hydns_left_out_length(p->left_out, p->left_out_len) == p->left_out_len;
}

bool hydns_rule_parts_valid(const struct hydns_rule_parts *p)
{
	return head_valid(&p->head) && !(p->head.flags & HYDNS_RULE_COUNTED) == !p->account && errors_valid(p) &&
	       left_out_valid(p) && name_valid(p->name, p->head.name_len) &&
	       ttls_valid(p->ttl, p->head.ttl_count, p->head.answer_len) && pointers_valid(p) &&
	       rotations_valid(&p->head, p->rotation, p->ttl) && places_valid(p->place, p->head.place_count);
}

/* Keeps the fields that the store writes itself. */
static void write_head(struct hydns_rule *r, const struct hydns_rule *head)
{
	struct hydns_rule h = *head;

	h.hits = r->hits;
	h.hits_end = r->hits_end;
	h.ordinal = r->ordinal;
	h.size_class = r->size_class;
	*r = h;
}

static void write_errors(struct hydns_rule *r, const struct hydns_rule_parts *p)
{
	struct hydns_errors *e = (void *)((__u8 *)r + errors_at(r));

	e->len = p->errors_len;
	e->sum = hydns_answer_sum(p->errors, p->errors_len, NULL, 0);
	memcpy(e->options, p->errors, p->errors_len);
}

static void write_pointers(struct hydns_rule *r, const struct hydns_rule_parts *p)
{
	struct hydns_pointers *to = (void *)((__u8 *)r + pointers_at(r));

	to->count = hydns_parts_pointers(p);
	memcpy(to->at, p->pointer, p->pointer_count * sizeof(*p->pointer));
	if (p->gap)
		memcpy(&to->at[p->pointer_count], p->gap, sizeof(*p->gap));
}

void hydns_rule_write(struct hydns_rule *r, const struct hydns_rule_parts *p)
{
	__u8 *at = r->data, *ttls;

	write_head(r, &p->head);
	r->answer_sum = hydns_answer_sum(p->answer, r->answer_len, p->ttl, r->ttl_count);
	memcpy(at, p->name, r->name_len);
	at += r->name_len;
	memcpy(at, &r->qtype, 2);
	memcpy(at + 2, class_in, 2);
	memcpy(at + 4, p->answer, r->answer_len);
	ttls = (__u8 *)r + HYDNS_RULE_TTLS(r->name_len, r->answer_len);
	memcpy(ttls, p->ttl, r->ttl_count * sizeof(*p->ttl));
	at = ttls + r->ttl_count * sizeof(*p->ttl);
	memcpy(at, p->rotation, r->rotation_count * sizeof(*p->rotation));
	at += r->rotation_count * sizeof(*p->rotation);
	memcpy(at, p->place, r->place_count * sizeof(*p->place));
	memcpy((__u8 *)r + account_at(r), &p->account, HYDNS_ACCOUNT_LEN(r->flags));
	if (r->flags & HYDNS_RULE_TEMPLATE)
		write_pointers(r, p);
	if (p->errors_len)
		write_errors(r, p);
	if (p->left_out_len)
		memcpy((__u8 *)r + left_out_at(r), p->left_out, p->left_out_len);
}

static bool written_errors_valid(const struct hydns_errors *e, __u32 room)
{
	return room >= HYDNS_ERRORS_HEAD && e->len <= room - HYDNS_ERRORS_HEAD && hydns_errors_valid(e->options, e->len) &&
	       e->sum == hydns_answer_sum(e->options, e->len, NULL, 0);
}

static bool written_pointers_valid(const struct hydns_rule *r, const __u16 *ttl)
{
	const struct hydns_pointers *p = hydns_rule_pointers(r);

	return !p || (offsets_valid(r, p->at, HYDNS_POINTERS_COUNT(p->count), ttl) && gap_valid(r, hydns_rule_gap(r)));
}

/* What follows the places: nothing is read beyond the slot. */
static bool blocks_valid(const struct hydns_rule *r, __u32 slot_size)
{
	const struct hydns_pointers *pointers = hydns_rule_pointers(r);
	const struct hydns_errors *errors;
	__u32 at;

	if (pointers && (pointers_at(r) + HYDNS_POINTERS_LEN(0) > slot_size ||
			 !is_template(r, r->data, HYDNS_POINTERS_COUNT(pointers->count))))
		return false;
	errors = hydns_rule_errors(r);
	at = errors_at(r);             /* behind pointers and gap */
	if (at > slot_size || (errors && (at > HYDNS_ERRORS_AT_MOST || !written_errors_valid(errors, slot_size - at))))
		return false;
	return !(r->flags & HYDNS_RULE_LEFT_OUT) ||
	       hydns_left_out_length(hydns_rule_left_out(r), slot_size - left_out_at(r));
}

bool hydns_rule_valid(const struct hydns_rule *r, __u32 slot_size)
{
	const __u8 *type = r->data + r->name_len;
	struct hydns_rotation rotation[HYDNS_ROTATIONS_MAX];
	__u16 ttl[HYDNS_TTLS_MAX], place[HYDNS_RULE_PLACES_MAX];

	if (!head_valid(r) || !blocks_valid(r, slot_size))
		return false;
	if (!name_valid(r->data, r->name_len) || memcmp(type, &r->qtype, 2) ||
	    memcmp(type + 2, class_in, 2))
		return false;
	memcpy(ttl, (const __u8 *)r + HYDNS_RULE_TTLS(r->name_len, r->answer_len), r->ttl_count * sizeof(*ttl));
	for (unsigned i = 0; i < r->rotation_count; i++)
		rotation[i] = hydns_rule_rotation(r, i);
	for (unsigned i = 0; i < r->place_count; i++)
		place[i] = hydns_rule_place(r, i);
	return ttls_valid(ttl, r->ttl_count, r->answer_len) && rotations_valid(r, rotation, ttl) &&
	       places_valid(place, r->place_count) && written_pointers_valid(r, ttl) &&
	       r->answer_sum == hydns_answer_sum(hydns_rule_answer(r), r->answer_len, ttl, r->ttl_count);
}

__u64 hydns_rule_hash(const struct hydns_rule *r, const __u64 seed[2])
{
	return hydns_key_hash(r->data, r->name_len, r->qtype, r->variant, r->resolver, seed);
}

bool hydns_rule_has_key(const struct hydns_rule *r, const __u8 *name, __u8 name_len, __u16 qtype,
			__u8 variant, __u8 resolver)
{
	return r->name_len == name_len && r->qtype == qtype && r->variant == variant &&
	       r->resolver == resolver && !memcmp(r->data, name, name_len);
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/rules/wire.h"

#include <string.h>

#define LABEL_MAX   63
#define POINTER     0xc0

static uint8_t lower(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? (uint8_t)(c + ('a' - 'A')) : c;
}

bool hydnsd_name_valid(const uint8_t *name, size_t len)
{
	size_t at = 0;

	if (len < 1 || len > HYDNS_NAME_MAX)
		return false;
	while (at < len && name[at]) {
		if (name[at] > LABEL_MAX)
			return false;
		at += 1 + name[at];
	}
	if (at + 1 != len)
		return false;
	for (at = 0; at < len; at++)
		if (lower(name[at]) != name[at])
			return false;
	return true;
}

bool hydnsd_name_below(const struct hydnsd_name *a, const uint8_t *b, size_t b_len)
{
	size_t at = 0;

	/* Only label starts count: "xexample." is not below "example.". */
	while (a->len - at > b_len)
		at += 1 + a->octet[at];
	return a->len - at == b_len && memcmp(a->octet + at, b, b_len) == 0;
}

static bool starts_question_label(const struct hydnsd_message *m, uint32_t offset)
{
	uint32_t at = HYDNSD_HEADER;

	while (at < offset && *hydnsd_at(m, at))
		at += 1 + *hydnsd_at(m, at);
	return at == offset;
}

/* Neither the header nor the question's type and class hold a name. */
static bool target_allowed(const struct hydnsd_message *m, uint32_t target, uint32_t chunk)
{
	if (target >= chunk || target < HYDNSD_HEADER)
		return false;
	if (target < hydnsd_answer_start(m))
		return starts_question_label(m, target);
	return true;
}

/* Copies labels from *at, below limit. *at then is the offset of a root label or pointer. False: labels do not fit. */
static bool copy_labels(const struct hydnsd_message *m, uint32_t *at, uint32_t limit,
			struct hydnsd_name *out)
{
	while (*at < limit) {
		uint8_t len = *hydnsd_at(m, *at);

		if (len == 0 || (len & POINTER) == POINTER)
			return true;
		/* one octet is left for the root label */
		if (len > LABEL_MAX || *at + 1 + len > limit || out->len + 1 + len > HYDNS_NAME_MAX - 1)
			return false;
		out->octet[out->len++] = len;
		for (uint32_t i = 1; i <= len; i++)
			out->octet[out->len++] = lower(*hydnsd_at(m, *at + i));
		*at += 1 + len;
	}
	return false;
}

static void mark(struct hydnsd_marks *marks, uint32_t from, uint32_t to)
{
	if (marks)
		memset(marks->octet + from, 1, to - from);
}

/* A pointer in the answer, not one that it leads to. */
static void record_pointer(struct hydnsd_marks *marks, uint32_t at, uint32_t target)
{
	if (!marks)
		return;
	if (marks->pointers < HYDNS_POINTERS_MOST)
		marks->pointer[marks->pointers] = (uint16_t)at;
	marks->pointers++;
	if (target < marks->least)
		marks->least = target;
}

bool hydnsd_name_read(const struct hydnsd_message *m, uint32_t *pos, uint32_t limit, bool compressed,
		      struct hydnsd_name *out, struct hydnsd_marks *marks)
{
	uint32_t chunk = *pos, at = *pos, after = 0, target;

	out->len = 0;
	for (;;) {
		if (!copy_labels(m, &at, limit, out))
			return false;
		if (*hydnsd_at(m, at) == 0) {
			out->octet[out->len++] = 0;
			at++;
			break;
		}
		if (!compressed || at + 2 > limit)
			return false;
		target = hydnsd_u16(hydnsd_at(m, at)) & 0x3fff;
		if (after)
			mark(marks, chunk, at + 2);
		else
			record_pointer(marks, at, target);
		after = after ? after : at + 2;
		at = target;
		if (!target_allowed(m, at, chunk))
			return false;
		/* each jump leads before the chunk it comes from, so the loop ends */
		limit = chunk;
		chunk = at;
	}
	if (after)
		mark(marks, chunk, at);
	*pos = after ? after : at;
	return true;
}

bool hydnsd_rr_read(const struct hydnsd_message *m, uint32_t *pos, struct hydnsd_rr *out,
		    struct hydnsd_marks *marks)
{
	const uint8_t *p;

	out->start = *pos;
	if (!hydnsd_name_read(m, pos, m->end, true, &out->owner, marks) || m->end - *pos < 10)
		return false;
	p = hydnsd_at(m, *pos);
	out->type = hydnsd_u16(p);
	out->class = hydnsd_u16(p + 2);
	out->ttl_at = *pos + 4;
	out->ttl = hydnsd_u32(p + 4);
	out->rdlen = hydnsd_u16(p + 8);
	out->rdata = *pos + 10;
	if (m->end - out->rdata < out->rdlen)
		return false;
	out->end = out->rdata + out->rdlen;
	*pos = out->end;
	return true;
}

bool hydnsd_rr_target(const struct hydnsd_message *m, const struct hydnsd_rr *rr, struct hydnsd_name *out)
{
	uint32_t pos = rr->rdata;

	return rr->type == HYDNS_TYPE_CNAME && hydnsd_name_read(m, &pos, rr->end, true, out, NULL);
}

struct hydnsd_left_out hydnsd_left_out_names(const uint8_t *block)
{
	return (struct hydnsd_left_out){ .at = block ? block + 1 : NULL, .left = block ? block[0] : 0 };
}

bool hydnsd_left_out_next(struct hydnsd_left_out *names, struct hydnsd_name *out)
{
	size_t len = 0;

	if (names->left == 0)
		return false;
	while (names->at[len])
		len += 1U + names->at[len];
	len++;
	memcpy(out->octet, names->at, len);
	out->len = (uint8_t)len;
	names->at += len;
	names->left--;
	return true;
}

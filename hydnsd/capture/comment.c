/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include <arpa/inet.h>
#include <ldns/ldns.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hydns/dns.h"
#include "hydnsd/capture/comment.h"

#define HEADER  12                     /* of a DNS message */
#define TYPE_OPT 41

/* Octets from at on as a number; 0 beyond the end. */
static unsigned word(const uint8_t *frame, size_t len, size_t at)
{
	return at + 2 <= len ? (unsigned)frame[at] << 8 | frame[at + 1] : 0;
}

/* Where the DNS message begins; 0: the frame is no UDP over IP. */
static size_t message_at(const uint8_t *frame, size_t len)
{
	size_t at = 12;

	while (at < 20 && (word(frame, len, at) == 0x8100 || word(frame, len, at) == 0x88a8))
		at += 4;
	switch (word(frame, len, at)) {
	case 0x0800:
		return at + 2 + 20 + 8;        /* what has options is never answered */
	case 0x86dd:
		return at + 2 + 40 + 8;
	default:
		return 0;
	}
}

/* The rules of a question differ by these, as in the column FOR of `hydnsctl rules'. */
static void add_variant(const uint8_t *frame, size_t len, size_t message, size_t behind, char *text, size_t room)
{
	bool opt = word(frame, len, message + 10) && behind < len && !frame[behind] && word(frame, len, behind + 1) == TYPE_OPT;
	bool want_do = opt && (word(frame, len, behind + 7) & 0x8000) != 0, rd = (word(frame, len, message + 2) & 0x0100) != 0;

	if (want_do || !rd)
		snprintf(text, room, " (%s%s%s)", want_do ? "do" : "", want_do && !rd ? " " : "", rd ? "" : "norec");
}

/* The question, which is the name of the rule. False: the frame has been cut before its end. */
static bool question(const uint8_t *frame, size_t len, char *text, size_t room)
{
	size_t message = message_at(frame, len), at = message + HEADER;
	char *name_text = NULL, *type_text;
	ldns_rdf *name = NULL;
	int n = -1;

	if (!message || at >= len || ldns_wire2dname(&name, frame, len, &at) != LDNS_STATUS_OK)
		return false;
	name_text = ldns_rdf2str(name);
	type_text = at + 4 <= len ? ldns_rr_type2str((ldns_rr_type)word(frame, len, at)) : NULL;
	if (name_text && type_text)
		n = snprintf(text, room, "%s %s", name_text, type_text);
	if (n > 0 && (size_t)n < room)
		add_variant(frame, len, message, at + 4, text + n, room - (size_t)n);
	ldns_rdf_deep_free(name);
	free(name_text);
	free(type_text);
	return n > 0;
}

void capture_comment(const struct hydns_captured *c, const uint8_t *query, char *text, size_t room)
{
	const char *words = hydns_reason_text((enum hydns_reason)c->reason), *colon = strchr(words, ':');
	const char *again = c->replayed ? ", after it was parked" : "";
	char asked[LDNS_MAX_DOMAINLEN * 4 + 64];

	if (c->reason == HYDNS_R_ANSWERED && question(query, c->octets[HYDNS_CAPTURE_IN], asked, sizeof(asked)))
		snprintf(text, room, "answered, rule %s%s", asked, again);
	else if (colon)
		snprintf(text, room, "%.*s: %s%s, %s", (int)(colon - words), words, hydns_reason_name((enum hydns_reason)c->reason), again,
			 colon + 2);
	else
		snprintf(text, room, "%s%s", words, again);
}

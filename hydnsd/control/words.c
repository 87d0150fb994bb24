/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Where there is no rule, the resolver's plugin says why (hydns/ring.h, struct hydns_not_offered). Its octets may be hostile,
 * so they are only used as numbers. */
#include "hydnsd/control/words.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "hydns/clients.h"
#include "hydns/hash.h"
#include "hydns/not_offered.h"
#include "hydnsd/control/activity.h"
#include "hydnsd/control/text.h"
#include "hydnsd/daemon/clock.h"
#include "hydnsd/netdev/prefixes.h"
#include "hydnsd/netdev/sources.h"
#include "hydnsd/resolvers/page.h"
#include "hydnsd/resolvers/session.h"

#define TEXT HYDNSD_WORDS

/* Appends to a text, which is cut to its room. */
static void __attribute__((format(printf, 2, 3))) say(char text[TEXT], const char *format, ...)
{
	size_t at = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + at, TEXT - at, format, args);
	va_end(args);
}

/* -- what the resolver's configuration says --------------------------------------------------------------- */
/* Appends its notes of this kind; false: there is none. */
static bool say_notes(const struct hydnsd_resolver *a, enum hydns_note_kind kind, char text[TEXT])
{
	bool any = false;

	for (uint32_t i = 0; i < a->note_count; i++) {
		if (a->note[i].kind != kind)
			continue;
		say(text, "%s%s", any ? "; " : "", a->note[i].text);
		any = true;
	}
	return any;
}

static void say_families(const struct hydnsd_families *f, char text[TEXT])
{
	for (uint32_t i = 0; i < HYDNSD_FAMILIES; i++)
		if (f->passed[i])
			say(text, "%s%s is not answered in the kernel: %s%s%s", text[0] ? "; " : "", f->why[i].family, f->why[i].note,
			    f->why[i].mend[0] ? ": " : "", f->why[i].mend);
}

/* -- the client -------------------------------------------------------------------------------------------- */
static bool covers(const struct hydns_acl_entry *e, const uint8_t addr[16])
{
	unsigned octets = e->prefixlen / 8, bits = e->prefixlen % 8;

	return memcmp(e->addr, addr, octets) == 0 &&
	       (bits == 0 || ((e->addr[octets] ^ addr[octets]) & (uint8_t)(0xff00 >> bits)) == 0);
}

/* The entry with the longest prefix, as in the program's table; NULL: none. */
static const struct hydns_acl_entry *entry_of(const struct hydnsd_resolver *a, const uint8_t addr[16])
{
	const struct hydns_acl_entry *found = NULL;

	for (uint32_t n = 0; n < a->acl_count; n++)
		if (covers(&a->acl[n], addr) && (!found || a->acl[n].prefixlen > found->prefixlen))
			found = &a->acl[n];
	return found;
}

static const char *client_text(uint8_t why)
{
	static const char *const texts[] = {
#define HYDNS_CLIENT(name, text) text,
#include "hydns/clients.def"
#undef HYDNS_CLIENT
	};

	return texts[why < HYDNS_CLIENTS ? why : HYDNS_CLIENT_UNSAID];
}

static void say_entry(const struct hydns_acl_entry *e, const uint8_t client[16], char text[TEXT])
{
	bool v4 = hydnsd_is_mapped(client);
	unsigned family = v4 ? HYDNSD_PREFIX_BITS_V4 : 0;
	char block[HYDNSD_ADDRESS_TEXT];

	if (e && e->prefixlen > family)
		say(text, "clients of %s/%u %s", hydnsd_address_text(e->addr, block), e->prefixlen - family, client_text(e->why));
	else
		say(text, "clients of this address %s", client_text(e ? e->why : HYDNS_CLIENT_NO_ENTRY));
}

/* Of a client whose address family is off (ipv6: no); false: it is not. */
static bool say_off(const struct hydnsd *d, const uint8_t client[16], char text[TEXT])
{
	bool v4 = hydnsd_is_mapped(client);
	struct hydnsd_sources_state off;

	if (!hydnsd_families_off(d, v4 ? HYDNSD_IPV4 : HYDNSD_IPV6, &off))
		return false;
	say(text, "%s is not answered in the kernel: %s: %s", off.family, off.note, off.mend);
	return true;
}

/* Of a client that the program passes. */
static void say_refused(struct hydnsd *d, const struct hydnsd_verdict *v, char text[TEXT])
{
	const struct hydns_acl_entry *e = entry_of(&d->resolver[v->resolver], v->client);
	const char *route = e && e->action != HYDNS_ACL_PASS ? hydnsd_sources_refuse(d, v->client) : NULL;

	if (v->said.beneath == HYDNS_R_BAD_SOURCE)
		say(text, "the kernel path answers no query with this source address, which is a loopback, multicast or "
		    "reserved one, or the resolver's own: the resolver does");
	else if (route)
		say(text, "%s", route);
	else
		say_entry(e, v->client, text);
}

/* Without a named client: all that were tried are passed. */
static void say_nobody(struct hydnsd *d, struct hydnsd_verdict *v)
{
	const struct hydnsd_resolver *a = &d->resolver[v->resolver];
	const struct hydns_acl_entry *e = entry_of(a, v->client);

	if (hydnsd_families_none(&v->families)) {
		say_families(&v->families, v->text);
	} else if (v->said.beneath == HYDNS_R_ACL && e && e->action != HYDNS_ACL_PASS) {
		say_refused(d, v, v->text);
		say(v->text, "; another client may be answered: name it with --client");
	} else if (a->state != HYDNSD_RESOLVER_READY) { /* only the program knows the list of a disconnected resolver */
		say(v->text, "the query is %s", hydns_reason_text(v->said.beneath));
	} else if (!say_notes(a, HYDNS_NOTE_CLIENTS, v->text)) {
		say(v->text, "the resolver's access control plainly allows no client: the resolver itself answers, or refuses, "
		    "all of them");
	}
}

/* -- no rule ------------------------------------------------------------------------------------------------- */
static const char *not_offered_text(unsigned why)
{
	static const char *const texts[] = {
#define HYDNS_NOT_OFFERED(name, text) text,
#include "hydns/not_offered.def"
#undef HYDNS_NOT_OFFERED
	};

	return texts[why < HYDNS_NOT_OFFERED_REASONS ? why : HYDNS_NOT_OFFERED_NONE];
}

/* The not-offered reason of the question, or of the same name and type in another variant. */
static bool find_not_offered(struct hydnsd *d, uint32_t i, const struct hydnsd_asked *q, struct hydns_not_offered *out)
{
	const struct hydnsd_resolver *a = &d->resolver[i];

	for (unsigned flags = 0; flags <= HYDNS_VARIANTS; flags++) {
		uint64_t key = hydns_key_hash(q->name.octet, q->name.len, q->query.qtype, (uint8_t)(q->variant ^ flags), 0,
					      a->hello.seed);

		if (hydnsd_session_not_offered(d, a->session, key, out))
			return true;
	}
	return false;
}

static void say_age(char text[TEXT], uint64_t age_ms)
{
	say(text, "; asked %llu.%llu s ago", (unsigned long long)age_ms / 1000, (unsigned long long)age_ms / 100 % 10);
}

static void say_not_offered(const struct hydnsd_resolver *a, const struct hydns_not_offered *k, uint32_t age_ms,
			    char text[TEXT])
{
	unsigned why = k->what >> HYDNS_NOT_OFFERED_VALUE_BITS, value = k->what & HYDNS_NOT_OFFERED_VALUE_MOST;
	const char *form = not_offered_text(why), *number = strstr(form, "%u");

	say(text, "no rule: ");
	if (number)
		say(text, "%.*s%u%s", (int)(number - form), form, value, number + 2);
	else
		say(text, "%s", form);
	if (why == HYDNS_NOT_OFFERED_SHORT_TTL)
		say(text, " %u", a->hello.min_ttl);
	say_age(text, age_ms);
}

static void say_cold(struct hydnsd *d, const struct hydnsd_resolver *a, char text[TEXT])
{
	say(text, "no rule: ");
	if (a->hello.admission > 1)
		say(text, "asked fewer than %u times lately (hydns-admission), or not at all", a->hello.admission);
	else if (hydnsd_rules_threshold(d->rules))
		say(text, "the store is full, and it was asked too rarely, or not at all, to take another rule's place");
	else
		say(text, "nobody whom the kernel may answer has asked for it lately, or only once");
}

static void say_no_rule(struct hydnsd *d, uint32_t i, const struct hydnsd_asked *q, char text[TEXT])
{
	const struct hydnsd_resolver *a = &d->resolver[i];
	uint64_t refused_ms = UINT64_MAX;
	enum hydnsd_rejection why = hydnsd_activity_last_rejection(d, i, q->name.octet, q->name.len, q->query.qtype, q->variant,
								 &refused_ms);
	struct hydns_not_offered k;
	uint32_t age_ms;

	if (find_not_offered(d, i, q, &k)) {
		age_ms = (uint32_t)hydnsd_now_ms() - k.at_ms;
		if (!why || age_ms <= refused_ms) {
			say_not_offered(a, &k, age_ms, text);
			return;
		}
	}
	if (!why) {
		say_cold(d, a, text);
		return;
	}
	say(text, "no rule: hydnsd did not take the resolver's last offer: %s", hydnsd_rejection_text(why));
	say_age(text, refused_ms);
}

/* -- a rule ---------------------------------------------------------------------------------------------------- */
static void say_epoch(struct hydnsd *d, uint32_t handle, char text[TEXT])
{
	if (handle && hydnsd_resolver_suspends(d, hydns_store_rule(hydnsd_rules_store(d->rules), handle)))
		say(text, "a rule is there, but waits until hydnsd has withdrawn what its resolver changed while hydnsd was away");
	else
		say(text, "a rule is there, but its resolver has withdrawn everything since");
}

/* Of a query whose client is let in. */
static void say_rule(struct hydnsd *d, const struct hydnsd_asked *q, struct hydnsd_verdict *v)
{
	switch (v->said.beneath) {
	case HYDNS_R_ANSWERED:
		if (!v->handle)
			say(v->text, "its preloaded zone has no such name or type, or has delegated the name: ");
		say(v->text, q->has_client ? "a rule answers them" :
		    "a rule answers clients that the resolver's access control allows");
		if (d->resolver[v->resolver].state == HYDNSD_RESOLVER_STALE)
			say(v->text, "; the resolver has crashed, and its rules outlive it (hydns-stale-after-crash): start it");
		break;
	case HYDNS_R_MISS:
		if (d->resolver[v->resolver].state == HYDNSD_RESOLVER_STALE)
			say(v->text, "no rule: the resolver has crashed, and has left no answer to this: start it");
		else
			say_no_rule(d, v->resolver, q, v->text);
		break;
	case HYDNS_R_EPOCH:
		say_epoch(d, v->handle, v->text);
		break;
	case HYDNS_R_EXPIRED:
		say(v->text, "a rule is there, but its TTL is over");
		break;
	default:
		say(v->text, "a rule is there, but the query is %s", hydns_reason_text(v->said.beneath));
	}
}

/* -- all of it --------------------------------------------------------------------------------------------------- */
bool hydnsd_words_let_in(enum hydns_reason r)
{
	switch (r) {
	case HYDNS_R_ANSWERED:
	case HYDNS_R_MISS:
	case HYDNS_R_LETTER_CASE:
	case HYDNS_R_COOKIE:
	case HYDNS_R_EPOCH:
	case HYDNS_R_EXPIRED:
	case HYDNS_R_TOO_BIG:
	case HYDNS_R_NO_ROUTE:
	case HYDNS_R_REFRESH:
	case HYDNS_R_NO_ROOM:
		return true;
	default:
		return false;
	}
}

static void say_let_in(struct hydnsd *d, const struct hydnsd_asked *q, struct hydnsd_verdict *v)
{
	if (q->has_client)
		say_entry(entry_of(&d->resolver[v->resolver], v->client), v->client, v->text);
	if (!q->name.len)
		return;
	if (v->text[0])
		say(v->text, "; ");
	say_rule(d, q, v);
	say_families(&v->families, v->text);
}

void hydnsd_words_find(struct hydnsd *d, const struct hydnsd_asked *q, struct hydnsd_verdict *v)
{
	const struct hydnsd_resolver *a = &d->resolver[v->resolver];
	enum hydns_reason r = v->said.beneath;

	if (a->state == HYDNSD_RESOLVER_CONFIGURING && r != HYDNS_R_ANSWERED) {
		say(v->text, "the resolver has not finished registering");
	} else if (r != HYDNS_R_ANSWERED && say_notes(a, HYDNS_NOTE_OBSTACLE, v->text)) {
		say(v->text, "; nothing is offered to the kernel while this holds");
	} else if (hydnsd_words_let_in(r)) {
		say_let_in(d, q, v);
	} else if (r == HYDNS_R_NOT_SERVICE) {
		if (!say_notes(a, HYDNS_NOTE_ADDRESSES, v->text))
			say(v->text, "hydnsd has registered no address and port of this resolver%s: its log says why",
			    q->has_client ? " that this client can ask" : "");
	} else if (r == HYDNS_R_RESOLVER_GONE) {
		say(v->text, "the resolver gives no sign of life, or has not finished registering");
	} else if (r == HYDNS_R_ACL || r == HYDNS_R_BAD_SOURCE) {
		if (q->has_client)
			say_refused(d, v, v->text);
		else
			say_nobody(d, v);
	} else if (r != HYDNS_R_NOT_IP || !say_off(d, v->client, v->text)) {
		say(v->text, "the query is %s", hydns_reason_text(r));
	}
}

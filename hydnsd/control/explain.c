/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Why a question, or a client, is or is not answered in the kernel: the program's own checks, in its own order, for each
 * resolver. Where no rule is there the resolver's plugin says why (abi.h, struct hydns_kept): hostile octets, of which
 * only numbers are taken.
 */
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "hydns/clients.h"
#include "hydns/hash.h"
#include "hydns/kept.h"
#include "hydns/reasons.h"
#include "hydnsd/control/activity.h"
#include "hydnsd/daemon/clock.h"
#include "hydnsd/control/families.h"
#include "hydnsd/netdev/links.h"
#include "hydnsd/netdev/prefixes.h"
#include "hydnsd/control/report.h"
#include "hydnsd/resolvers/services.h"
#include "hydnsd/resolvers/session.h"
#include "hydnsd/netdev/sources.h"

#define TEXT 800
#define NETBLOCK (INET6_ADDRSTRLEN + 4)

struct verdict {
	uint32_t authority;            /* HYDNS_AUTHORITIES: there is none */
	enum hydns_reason reason;      /* ANSWERED: in the kernel */
	uint32_t handle;               /* of the rule; 0: none */
	struct hydnsd_families families; /* looked at when no client was named */
	char text[TEXT];
};

/* Adds to a text, which is cut where it is full. */
static void __attribute__((format(printf, 2, 3))) say(char text[TEXT], const char *format, ...)
{
	size_t at = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + at, TEXT - at, format, args);
	va_end(args);
}

/* -- what the resolver's configuration says --------------------------------------------------------------- */
/* Its notes of this kind; false: there is none. */
static bool say_notes(const struct hydnsd_authority *a, enum hydns_note_kind kind, char text[TEXT])
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

struct service_count {
	uint32_t authority, count;
};

static void count_service(const struct hydns_service_key *key, uint32_t authority, void *arg)
{
	struct service_count *c = arg;

	(void)key;
	c->count += authority == c->authority;
}

static bool has_service(struct hydnsd *d, uint32_t i)
{
	struct service_count c = { .authority = i };

	hydnsd_services_each(d, count_service, &c);
	return c.count != 0;
}

/* -- the client -------------------------------------------------------------------------------------------- */
static bool covers(const struct hydns_acl_entry *e, const uint8_t addr[16])
{
	unsigned octets = e->prefixlen / 8, bits = e->prefixlen % 8;

	return memcmp(e->addr, addr, octets) == 0 &&
	       (bits == 0 || ((e->addr[octets] ^ addr[octets]) & (uint8_t)(0xff00 >> bits)) == 0);
}

/* The longest prefix, as in the program's table; NULL: none. */
static const struct hydns_acl_entry *entry_of(const struct hydnsd_authority *a, const uint8_t addr[16])
{
	const struct hydns_acl_entry *found = NULL;

	for (uint32_t n = 0; n < a->acl_count; n++)
		if (covers(&a->acl[n], addr) && (!found || a->acl[n].prefixlen > found->prefixlen))
			found = &a->acl[n];
	return found;
}

static const char *netblock(const uint8_t addr[16], unsigned prefixlen, bool v4, char out[NETBLOCK])
{
	char text[INET6_ADDRSTRLEN];

	inet_ntop(v4 ? AF_INET : AF_INET6, addr + (v4 ? 12 : 0), text, sizeof(text));
	snprintf(out, NETBLOCK, "%s/%u", text, prefixlen - (v4 ? HYDNSD_PREFIX_BITS_V4 : 0));
	return out;
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

/* By the host's routes. */
static bool source_is_refused(struct hydnsd *d, const uint8_t addr[16], struct verdict *v)
{
	const char *why = hydnsd_sources_refuse(d, addr);

	if (!why)
		return false;
	v->reason = HYDNS_R_ACL;
	say(v->text, "%s", why);
	return true;
}

/* False: the program passes this client's queries, and the verdict says why. */
static bool client_is_answered(struct hydnsd *d, const uint8_t addr[16], struct verdict *v)
{
	const struct hydns_acl_entry *e = entry_of(&d->authority[v->authority], addr);
	bool v4 = IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)addr);
	unsigned family = v4 ? HYDNSD_PREFIX_BITS_V4 : 0;
	struct hydnsd_sources_state off;
	char block[NETBLOCK];

	if (hydnsd_families_off(d, v4 ? HYDNSD_IPV4 : HYDNSD_IPV6, &off)) {
		v->reason = HYDNS_R_NOT_IP; /* the program does not read it */
		say(v->text, "%s is not answered in the kernel: %s: %s", off.family, off.note, off.mend);
		return false;
	}
	if (hydnsd_sources_never(addr, HYDNSD_PREFIX_BITS)) {
		v->reason = HYDNS_R_BAD_SOURCE;
		say(v->text, "the kernel path answers no query with this source address, which is a loopback, multicast or "
		    "reserved one: the resolver does");
		return false;
	}
	v->reason = e && e->action != HYDNS_ACL_PASS ? HYDNS_R_ANSWERED : HYDNS_R_ACL;
	if (v->reason == HYDNS_R_ANSWERED && source_is_refused(d, addr, v))
		return false;
	if (e && e->prefixlen > family)
		say(v->text, "clients of %s %s", netblock(e->addr, e->prefixlen, v4, block), client_text(e->why));
	else
		say(v->text, "clients of this address %s", client_text(e ? e->why : HYDNS_CLIENT_NO_ENTRY));
	return v->reason == HYDNS_R_ANSWERED;
}

static bool anybody_is_answered(const struct hydnsd_authority *a)
{
	for (uint32_t n = 0; n < a->acl_count; n++)
		if (a->acl[n].action != HYDNS_ACL_PASS && !hydnsd_sources_never(a->acl[n].addr, a->acl[n].prefixlen))
			return true; /* localhost is in most lists */
	return false;
}

/* -- no rule ------------------------------------------------------------------------------------------------- */
static const char *kept_text(unsigned why)
{
	static const char *const texts[] = {
#define HYDNS_KEPT(name, text) text,
#include "hydns/kept.def"
#undef HYDNS_KEPT
	};

	return texts[why < HYDNS_KEPT_REASONS ? why : HYDNS_KEPT_NONE];
}

/* What the plugin noted of the question, or of the same with other flags. */
static bool find_kept(struct hydnsd *d, uint32_t i, const struct hydnsd_asked *q, struct hydns_kept *out)
{
	const struct hydnsd_authority *a = &d->authority[i];

	for (unsigned flags = 0; flags <= HYDNS_VARIANTS; flags++) {
		uint64_t key = hydns_key_hash(q->name.octet, q->name.len, q->qtype, (uint8_t)(q->variant ^ flags), 0,
					      a->hello.seed);

		if (hydnsd_session_kept(d, a->session, key, out))
			return true;
	}
	return false;
}

static void say_age(char text[TEXT], uint64_t age_ms)
{
	say(text, "; asked %llu.%llu s ago", (unsigned long long)age_ms / 1000, (unsigned long long)age_ms / 100 % 10);
}

static void say_kept(const struct hydnsd_authority *a, const struct hydns_kept *k, uint32_t age_ms, char text[TEXT])
{
	unsigned why = k->what >> HYDNS_KEPT_VALUE_BITS, value = k->what & HYDNS_KEPT_VALUE_MOST;
	const char *form = kept_text(why), *number = strstr(form, "%u");

	say(text, "no rule: ");
	if (number)
		say(text, "%.*s%u%s", (int)(number - form), form, value, number + 2);
	else
		say(text, "%s", form);
	if (why == HYDNS_KEPT_SHORT_TTL)
		say(text, " %u", a->hello.min_ttl);
	say_age(text, age_ms);
}

static void say_cold(struct hydnsd *d, const struct hydnsd_authority *a, char text[TEXT])
{
	say(text, "no rule: ");
	if (a->hello.admission > 1)
		say(text, "asked fewer than %u times lately (hydns-admission), or not at all", a->hello.admission);
	else if (hydnsd_rules_bar(d->rules))
		say(text, "the store is full, and it was asked too rarely, or not at all, to take another rule's place");
	else
		say(text, "nobody whom the kernel may answer has asked for it lately");
}

static void say_absence(struct hydnsd *d, uint32_t i, const struct hydnsd_asked *q, char text[TEXT])
{
	const struct hydnsd_authority *a = &d->authority[i];
	uint64_t refused_ms = UINT64_MAX;
	enum hydnsd_rejection why = hydnsd_activity_last_refusal(d, i, q->name.octet, q->name.len, q->qtype, q->variant,
								 &refused_ms);
	struct hydns_kept k;
	uint32_t age_ms;

	if (find_kept(d, i, q, &k)) {
		age_ms = (uint32_t)hydnsd_now_ms() - k.at_ms;
		if (!why || age_ms <= refused_ms) {
			say_kept(a, &k, age_ms, text);
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

/* -- one resolver ---------------------------------------------------------------------------------------------- */
/* What keeps a rule that is there from answering; ANSWERED: nothing. */
static enum hydns_reason obstacle(struct hydnsd *d, const struct hydns_rule *rule, bool has_client, char text[TEXT])
{
	if (hydnsd_authority_rests(d, rule)) {
		say(text, "a rule is there, but waits until hydnsd has withdrawn what its resolver changed while hydnsd was away");
		return HYDNS_R_EPOCH;
	}
	if (rule->epoch != hydnsd_authority_epoch(d, rule->authority)) {
		say(text, "a rule is there, but its resolver has withdrawn everything since");
		return HYDNS_R_EPOCH;
	}
	if (hydnsd_now_ns() >= rule->base_ns + rule->expire_ms * HYDNSD_NS_PER_MS) {
		say(text, "a rule is there, but its TTL is over");
		return HYDNS_R_EXPIRED;
	}
	say(text, has_client ? "a rule answers them" : "a rule answers clients that the resolver's access control allows");
	return HYDNS_R_ANSWERED;
}

static void say_families(const struct hydnsd_families *f, char text[TEXT])
{
	for (uint32_t i = 0; i < HYDNSD_FAMILIES; i++)
		if (f->passed[i])
			say(text, "%s%s is not answered in the kernel: %s%s%s", text[0] ? "; " : "", f->why[i].family, f->why[i].note,
			    f->why[i].mend[0] ? ": " : "", f->why[i].mend);
}

/* What holds for whatever is asked; false: it keeps all queries from being answered. */
static bool resolver_answers(struct hydnsd *d, struct verdict *v)
{
	const struct hydnsd_authority *a = &d->authority[v->authority];
	bool served = has_service(d, v->authority);

	if (a->state == HYDNSD_AUTHORITY_CONFIGURING) {
		v->reason = HYDNS_R_RESOLVER_GONE;
		say(v->text, "the resolver has not finished registering");
		return false;
	}
	v->reason = served ? HYDNS_R_MISS : HYDNS_R_NOT_SERVICE;
	if (say_notes(a, HYDNS_NOTE_OBSTACLE, v->text)) {
		say(v->text, "; nothing is offered to the kernel while this holds");
		return false;
	}
	if (!served) {
		if (!say_notes(a, HYDNS_NOTE_ADDRESSES, v->text))
			say(v->text, "hydnsd has registered no address and port of this resolver: its log says why");
		return false;
	}
	if (!a->live || hydnsd_authority_age(d, v->authority) >= HYDNS_HEARTBEAT_STALE_NS) {
		v->reason = HYDNS_R_RESOLVER_GONE;
		say(v->text, "the resolver gives no sign of life, or has not finished registering");
		return false;
	}
	return true;
}

/* Whole address families that are passed; false: all that the resolver is asked by. */
static bool families_are_answered(struct hydnsd *d, struct verdict *v)
{
	hydnsd_families_of(d, v->authority, &v->families);
	if (!hydnsd_families_none(&v->families))
		return true;
	v->reason = v->families.served[HYDNSD_IPV4] || d->options.ipv6 ? HYDNS_R_ACL : HYDNS_R_NOT_IP;
	say_families(&v->families, v->text);
	return false;
}

static bool clients_are_answered(struct hydnsd *d, const struct hydnsd_asked *q, struct verdict *v)
{
	const struct hydnsd_authority *a = &d->authority[v->authority];

	if (q->has_client)
		return client_is_answered(d, q->client, v);
	/* an orphan's list is known to the program alone */
	if (a->state != HYDNSD_AUTHORITY_READY || anybody_is_answered(a))
		return families_are_answered(d, v);
	v->reason = HYDNS_R_ACL;
	if (!say_notes(a, HYDNS_NOTE_CLIENTS, v->text))
		say(v->text, "the resolver's access control plainly allows no client: the resolver itself answers, or refuses, "
		    "all of them");
	return false;
}

static void judge(struct hydnsd *d, uint32_t i, const struct hydnsd_asked *q, struct verdict *v)
{
	const struct hydns_store *s = hydnsd_rules_store(d->rules);

	*v = (struct verdict){ .authority = i };
	if (q->name.len)
		v->handle = hydns_store_find(s, q->name.octet, q->name.len, q->qtype, q->variant, (uint8_t)i);
	if (!resolver_answers(d, v) || !clients_are_answered(d, q, v) || !q->name.len)
		return;
	if (v->text[0])
		say(v->text, "; ");
	if (v->handle) {
		v->reason = obstacle(d, hydns_store_rule(s, v->handle), q->has_client, v->text);
		say_families(&v->families, v->text);
	} else {
		v->reason = HYDNS_R_MISS;
		say_absence(d, i, q, v->text);
	}
}

/* Of several resolvers' verdicts the one that says most: an answer, then a rule, then a client's entry. */
static unsigned weight(const struct verdict *v)
{
	if (v->authority == HYDNS_AUTHORITIES)
		return 0;
	return v->reason == HYDNS_R_ANSWERED ? 4 : v->handle ? 3 : v->reason == HYDNS_R_MISS ? 2 : 1;
}

static bool is_there(const struct hydnsd_authority *a)
{
	return a->state != HYDNSD_AUTHORITY_FREE && a->state != HYDNSD_AUTHORITY_CLOSING;
}

static unsigned judge_all(struct hydnsd *d, const struct hydnsd_asked *q, struct verdict *best)
{
	unsigned resolvers = 0;

	*best = (struct verdict){ .authority = HYDNS_AUTHORITIES, .reason = HYDNS_R_NOT_SERVICE,
				  .text = "no resolver is connected and ready: look at its log" };
	for (uint32_t i = 0; i < HYDNS_AUTHORITIES; i++) {
		struct verdict v;

		if (!is_there(&d->authority[i]))
			continue;
		resolvers++;
		judge(d, i, q, &v);
		if (weight(&v) > weight(best))
			*best = v;
	}
	return resolvers;
}

/* -- the reply --------------------------------------------------------------------------------------------------- */
static json_t *reply(struct hydnsd *d, const struct verdict *v, const char *text)
{
	bool known = v->authority < HYDNS_AUTHORITIES;

	return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o}", "where", v->reason == HYDNS_R_ANSWERED ? "kernel" : "resolver",
			 "reason", hydns_reason_name(v->reason), "text", text, "families_passed", hydnsd_families_json(&v->families),
			 "rule", v->handle ? hydnsd_report_rule(d, v->handle) : json_null(),
			 "resolver", known ? json_string(d->authority[v->authority].hello.identity) : json_null());
}

json_t *hydnsd_report_explain(struct hydnsd *d, const struct hydnsd_asked *q)
{
	struct verdict v;
	unsigned resolvers = judge_all(d, q, &v);
	char text[TEXT] = "";
	bool paused = false;

	hydns_kern_paused(d->kern, &paused);
	if (paused) {
		v.reason = HYDNS_R_PAUSED;
		return reply(d, &v, "the kernel path is paused: `hydnsctl resume' ends this");
	}
	if (!hydnsd_links_any_attached(d)) {
		v.reason = HYDNS_R_MISS;
		return reply(d, &v, "the program is attached to no interface: see `hydnsctl status'");
	}
	if (resolvers > 1 && v.authority < HYDNS_AUTHORITIES)
		say(text, "%s: ", d->authority[v.authority].hello.identity);
	say(text, "%s", v.text);
	return reply(d, &v, text);
}

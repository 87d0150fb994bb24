/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Chains of a packet filter, the walk of a query through them, and how single values match it. */
#include "config.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "hydnsd/doctor/firewall.h"

#define DEPTH_MAX 16           /* nested jumps that the kernel allows */

/* -- chains -------------------------------------------------------------------------------------------------- */
struct firewall_chain *firewall_chain_add(struct firewall *f, const char *family, const char *table, const char *name)
{
	struct firewall_chain *more = realloc(f->chain, (f->chains + 1) * sizeof(*more)), *c;

	if (!more)
		return NULL;
	f->chain = more;
	c = &more[f->chains++];
	memset(c, 0, sizeof(*c));
	snprintf(c->family, sizeof(c->family), "%s", family);
	snprintf(c->table, sizeof(c->table), "%s", table);
	snprintf(c->name, sizeof(c->name), "%s", name);
	return c;
}

struct firewall_chain *firewall_chain_find(const struct firewall *f, const char *family, const char *table,
					   const char *name)
{
	for (size_t i = 0; i < f->chains; i++)
		if (!strcmp(f->chain[i].name, name) && !strcmp(f->chain[i].table, table) &&
		    !strcmp(f->chain[i].family, family))
			return &f->chain[i];
	return NULL;
}

struct firewall_rule *firewall_rule_add(struct firewall_chain *c)
{
	struct firewall_rule *more = realloc(c->rule, (c->rules + 1) * sizeof(*more));

	if (!more)
		return NULL;
	c->rule = more;
	memset(&more[c->rules], 0, sizeof(*more));
	return &more[c->rules++];
}

void firewall_free(struct firewall *f)
{
	for (size_t i = 0; i < f->chains; i++) {
		for (size_t k = 0; k < f->chain[i].rules; k++)
			free(f->chain[i].rule[k].line);
		free(f->chain[i].rule);
	}
	free(f->chain);
	memset(f, 0, sizeof(*f));
}

static int compare(const void *a, const void *b)
{
	const struct firewall_chain *x = a, *y = b;

	return x->hook != y->hook ? (int)x->hook - (int)y->hook : (x->priority > y->priority) - (x->priority < y->priority);
}

void firewall_sort(struct firewall *f)
{
	if (f->chains)
		qsort(f->chain, f->chains, sizeof(*f->chain), compare);
}

void firewall_take_refusal(struct firewall_rule *r, const char *does)
{
	r->verdict = FIREWALL_REFUSE;
	r->does = does;
	if (!strcmp(does, FIREWALL_REDIRECTS))
		r->aim = FIREWALL_AIM_ADDRESS;
}

/* -- the walk ------------------------------------------------------------------------------------------------ */
struct walk {
	struct firewall *f;
	struct firewall_query q;
	void (*report)(const struct firewall_chain *, const struct firewall_rule *, void *);
	void *arg;
};

static void refuse(struct walk *w, const struct firewall_chain *c, struct firewall_rule *r)
{
	if (!r->reported)
		w->report(c, r, w->arg);
	r->reported = true;
}

static bool walk_chain(struct walk *w, struct firewall_chain *c, bool all, unsigned depth);

/* Walks a jump's target. Returns whether queries come back from it. */
static bool walk_target(struct walk *w, const struct firewall_chain *c, const struct firewall_rule *r, bool all,
			unsigned depth)
{
	struct firewall_chain *target = firewall_chain_find(w->f, c->family, c->table, r->target);

	return !target || depth >= DEPTH_MAX || walk_chain(w, target, all, depth + 1);
}

/* all: every query of this kind enters the chain. Returns whether any leaves it by its end. */
static bool walk_chain(struct walk *w, struct firewall_chain *c, bool all, unsigned depth)
{
	bool left = false;

	for (size_t i = 0; i < c->rules; i++) {
		struct firewall_rule *r = &c->rule[i];
		enum firewall_match m = w->f->match(w->f, c, r, &w->q);
		bool each = m == FIREWALL_ALL;

		if (m == FIREWALL_NEVER || r->verdict == FIREWALL_GO_ON)
			continue;
		if (r->verdict == FIREWALL_REFUSE)
			refuse(w, c, r);
		else if (r->verdict == FIREWALL_UNTRACK)
			w->q.untracked |= all && each;
		else if (r->verdict == FIREWALL_JUMP)
			each = !walk_target(w, c, r, all && each, depth) && each;
		else if (r->verdict == FIREWALL_GOTO)
			left |= walk_target(w, c, r, all && each, depth);
		else if (r->verdict == FIREWALL_RETURN)
			left = true;
		if (each && r->verdict != FIREWALL_UNTRACK)
			return left;
	}
	return true;
}

static bool concerns(const struct firewall_chain *c, const struct firewall_query *q)
{
	if (!c->hook || (!strcmp(c->family, "ip") && q->family != 4) || (!strcmp(c->family, "ip6") && q->family != 6))
		return false;
	if (!strcmp(c->family, "bridge"))
		return q->bridged;
	return !c->device[0] || firewall_interface(q, c->device, 0) != FIREWALL_NEVER;
}

void firewall_walk(struct firewall *f, const struct firewall_query *q,
		   void (*report)(const struct firewall_chain *, const struct firewall_rule *, void *), void *arg)
{
	struct walk w = { .f = f, .q = *q, .report = report, .arg = arg };

	for (size_t i = 0; i < f->chains; i++) {
		struct firewall_chain *c = &f->chain[i];

		if (concerns(c, q) && walk_chain(&w, c, true, 0) && c->drops)
			refuse(&w, c, &c->policy);
	}
}

/* -- values -------------------------------------------------------------------------------------------------- */
enum firewall_match firewall_not(enum firewall_match m)
{
	return m == FIREWALL_SOME ? m : m == FIREWALL_ALL ? FIREWALL_NEVER : FIREWALL_ALL;
}

static enum firewall_match whether(bool is)
{
	return is ? FIREWALL_ALL : FIREWALL_NEVER;
}

enum firewall_match firewall_protocol(const char *value)
{
	return whether(!strcasecmp(value, "udp") || !strcmp(value, "17") || !strcmp(value, "all") || !strcmp(value, "0"));
}

enum firewall_match firewall_port(const struct firewall_query *q, long low, long high)
{
	return whether(low <= (long)q->port && (long)q->port <= high);
}

enum firewall_match firewall_interface(const struct firewall_query *q, const char *value, char wildcard)
{
	size_t n = strlen(value);
	bool open = n && wildcard && value[n - 1] == wildcard;
	unsigned hits = 0;

	for (unsigned i = 0; i < q->names; i++)
		hits += open ? !strncmp(q->name[i], value, n - 1) : !strcmp(q->name[i], value);
	if (!q->names)
		return strcmp(value, "lo") ? FIREWALL_SOME : FIREWALL_NEVER;
	return !hits ? FIREWALL_NEVER : hits == q->names ? FIREWALL_ALL : FIREWALL_SOME;
}

enum firewall_match firewall_state(const struct firewall_query *q, const char *value)
{
	return whether(!strcasecmp(value, q->untracked ? "untracked" : "new"));
}

enum firewall_match firewall_packet_type(const char *value)
{
	return whether(!strcmp(value, "host") || !strcmp(value, "unicast"));
}

/* First and last address of a value, as 16 octets; false: it is not of this family. */
static bool bounds(int family, const char *value, unsigned char low[16], unsigned char high[16])
{
	int af = family == 4 ? AF_INET : AF_INET6, size = family == 4 ? 4 : 16, bits = size * 8;
	const char *slash = strchr(value, '/'), *dash = strchr(value, '-');
	char text[64];

	snprintf(text, sizeof(text), "%.*s", (int)strcspn(value, "/-"), value);
	memset(low, 0, 16);
	if (inet_pton(af, text, low) != 1)
		return false;
	memcpy(high, low, 16);
	if (dash)
		return inet_pton(af, dash + 1, high) == 1;
	if (slash)
		bits = atoi(slash + 1);
	for (int i = bits; i >= 0 && i < size * 8; i++) {
		low[i / 8] &= (unsigned char)~(0x80 >> i % 8);
		high[i / 8] |= (unsigned char)(0x80 >> i % 8);
	}
	return true;
}

static bool within(const unsigned char *low, const unsigned char *high, int family, const char *outer)
{
	unsigned char from[16], to[16];

	return bounds(family, outer, from, to) && memcmp(from, low, 16) <= 0 && memcmp(high, to, 16) <= 0;
}

enum firewall_match firewall_source(const struct firewall_query *q, const char *value)
{
	unsigned char low[16], high[16];
	const char *everybody = q->family == 4 ? "0.0.0.0/0" : "::/0";

	if (!bounds(q->family, value, low, high))
		return strchr(value, q->family == 4 ? ':' : '.') ? FIREWALL_NEVER : FIREWALL_SOME;
	if (within(low, high, q->family, q->family == 4 ? "127.0.0.0/8" : "::1"))
		return FIREWALL_NEVER;
	bounds(q->family, everybody, low, high);
	return within(low, high, q->family, value) ? FIREWALL_ALL : FIREWALL_SOME;
}

enum firewall_match firewall_destination(const struct firewall_query *q, const char *value)
{
	unsigned char low[16], high[16];

	if (q->address[0]) {
		if (!bounds(q->family, value, low, high))
			return strchr(value, q->family == 4 ? ':' : '.') ? FIREWALL_NEVER : FIREWALL_SOME;
		bounds(q->family, q->address, low, high);
		return whether(within(low, high, q->family, value));
	}
	if (bounds(q->family, value, low, high) &&
	    (within(low, high, q->family, q->family == 4 ? "224.0.0.0/3" : "ff00::/8") ||
	     within(low, high, q->family, q->family == 4 ? "127.0.0.0/8" : "::1")))
		return FIREWALL_NEVER;
	return firewall_source(q, value);
}

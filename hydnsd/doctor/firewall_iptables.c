/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* iptables rules, as iptables-save and ip6tables-save print them. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "hydnsd/doctor/firewall.h"

#define WORDS_MAX 128
#define ROOM      4096           /* of a rule; a longer one counts as narrowed */

struct words {
	char room[ROOM];
	char *word[WORDS_MAX];
	unsigned count;
};

/* Cuts a line at spaces; a word in quotes may hold some. False when it does not fit. */
static bool cut(const char *line, struct words *w)
{
	char *p = w->room;

	w->count = 0;
	if (strlen(line) >= sizeof(w->room))
		return false;
	strcpy(w->room, line);
	while (*(p += strspn(p, " ")) && w->count < WORDS_MAX) {
		bool quoted = *p == '"';

		w->word[w->count++] = p += quoted;
		p += strcspn(p, quoted ? "\"" : " ");
		if (*p)
			*p++ = 0;
	}
	return !*p;
}

/* -- matches -------------------------------------------------------------------------------------------------- */
static enum firewall_match ports(const struct firewall_query *q, const char *list)
{
	enum firewall_match most = FIREWALL_NEVER;

	while (*list >= '0' && *list <= '9') {
		char *end;
		long low = strtol(list, &end, 10), high = *end == ':' ? strtol(end + 1, &end, 10) : low;

		if (firewall_port(q, low, high) == FIREWALL_ALL)
			most = FIREWALL_ALL;
		list = *end == ',' ? end + 1 : "";
	}
	return most;
}

static enum firewall_match states(const struct firewall_query *q, const char *list)
{
	char text[128], *rest = NULL;

	snprintf(text, sizeof(text), "%s", list);
	for (char *s = strtok_r(text, ",", &rest); s; s = strtok_r(NULL, ",", &rest))
		if (firewall_state(q, s) == FIREWALL_ALL)
			return FIREWALL_ALL;
	return FIREWALL_NEVER;
}

/* Match modules that restrict a rule only by their options, which option() knows. */
static bool is_known_match(const char *name)
{
	static const char *const known[] = {"udp", "tcp", "icmp", "icmp6", "comment", "multiport", "state", "conntrack",
					    "addrtype", "pkttype"};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(name, known[i]))
			return true;
	return false;
}

static enum firewall_match option(const struct firewall_query *q, const char *name, const char *value)
{
	enum firewall_match m;

	if (!strcmp(name, "-p"))
		return firewall_protocol(value);
	if (!strcmp(name, "-s"))
		return firewall_source(q, value);
	if (!strcmp(name, "-d"))
		return firewall_destination(q, value);
	if (!strcmp(name, "-i"))
		return firewall_interface(q, value, '+');
	if (!strcmp(name, "-m"))
		return is_known_match(value) ? FIREWALL_ALL : FIREWALL_SOME;
	if (!strcmp(name, "--dport") || !strcmp(name, "--dports"))
		return ports(q, value);
	if (!strcmp(name, "--ports")) {
		m = ports(q, value);
		return m == FIREWALL_NEVER ? FIREWALL_SOME : m;    /* it may be the client's port */
	}
	if (!strcmp(name, "--state") || !strcmp(name, "--ctstate"))
		return states(q, value);
	if (!strcmp(name, "--dst-type"))
		return strcasestr(value, "LOCAL") ? FIREWALL_ALL : FIREWALL_NEVER;
	if (!strcmp(name, "--pkt-type"))
		return firewall_packet_type(value);
	return strcmp(name, "--comment") ? FIREWALL_SOME : FIREWALL_ALL;
}

static enum firewall_match rule_is(const struct firewall *f, const struct firewall_chain *c,
				   const struct firewall_rule *r, const struct firewall_query *q)
{
	enum firewall_match m, least = FIREWALL_ALL;
	struct words w;
	bool negated = false;

	(void)f;
	(void)c;
	if (!cut(r->line, &w))
		return FIREWALL_SOME;
	for (unsigned i = 2; i < w.count; i++) {
		const char *name = w.word[i];

		if (!strcmp(name, "-j") || !strcmp(name, "-g"))
			break;
		if (!strcmp(name, "!")) {
			negated = true;
			continue;
		}
		if (name[0] != '-')
			continue;
		m = option(q, name, i + 1 < w.count ? w.word[i + 1] : "");
		i += !strcmp(name, "--comment");
		m = negated ? firewall_not(m) : m;
		least = m < least ? m : least;
		negated = false;
	}
	return least;
}

/* -- reading --------------------------------------------------------------------------------------------------- */
static const struct {
	const char *target;
	enum firewall_verdict verdict;
	const char *does;
} targets[] = {
	{"ACCEPT", FIREWALL_ACCEPT, NULL},          {"DROP", FIREWALL_REFUSE, "drops"},
	{"REJECT", FIREWALL_REFUSE, "rejects"},     {"RETURN", FIREWALL_RETURN, NULL},
	{"QUEUE", FIREWALL_REFUSE, "queues"},       {"NFQUEUE", FIREWALL_REFUSE, "queues"},
	{"REDIRECT", FIREWALL_REFUSE, FIREWALL_REDIRECTS}, {"DNAT", FIREWALL_REFUSE, FIREWALL_REDIRECTS},
	{"NETMAP", FIREWALL_REFUSE, FIREWALL_REDIRECTS},   {"TPROXY", FIREWALL_REFUSE, FIREWALL_REDIRECTS},
	{"NOTRACK", FIREWALL_UNTRACK, NULL},
};

/* Another target than the built-in ones is a chain, or an extension that lets the packet go on (LOG, MARK). */
static void take_target(const struct firewall *f, const struct firewall_chain *c, struct firewall_rule *r,
			const char *target, bool go)
{
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
		if (!strcmp(target, targets[i].target)) {
			r->verdict = targets[i].verdict;
			if (targets[i].does)
				firewall_take_refusal(r, targets[i].does);
			return;
		}
	if (!firewall_chain_find(f, c->family, c->table, target))
		return;
	r->verdict = go ? FIREWALL_GOTO : FIREWALL_JUMP;
	snprintf(r->target, sizeof(r->target), "%s", target);
}

static void take_words(const struct firewall *f, const struct firewall_chain *c, struct firewall_rule *r,
		       const struct words *w)
{
	static const char *const rates[] = {"limit", "hashlimit", "recent", "connlimit", "statistic", "quota"};

	for (unsigned i = 2; i + 1 < w->count; i++) {
		const char *name = w->word[i], *value = w->word[i + 1];
		bool negated = !strcmp(w->word[i - 1], "!");

		if (!strcmp(name, "-j") || !strcmp(name, "-g")) {
			take_target(f, c, r, value, name[1] == 'g');
			if (!strcmp(value, "CT") && i + 2 < w->count && !strcmp(w->word[i + 2], "--notrack"))
				r->verdict = FIREWALL_UNTRACK;
			break;
		}
		for (size_t k = 0; !strcmp(name, "-m") && k < sizeof(rates) / sizeof(rates[0]); k++)
			if (!strcmp(value, rates[k]))
				r->aim = FIREWALL_AIM_RATE;
		if (!strcmp(name, "-s") && r->aim != FIREWALL_AIM_RATE) {
			r->aim = FIREWALL_AIM_SOURCE;
			snprintf(r->source, sizeof(r->source), "%s", negated ? "" : value);
		} else if (!strcmp(name, "-i") && r->aim == FIREWALL_AIM_OTHER) {
			r->aim = FIREWALL_AIM_INTERFACE;
		}
	}
}

/* "-A INPUT -s 192.0.2.1/32 -j DROP" */
static bool add_rule(struct firewall *f, const char *family, const char *table, const char *program, const char *line)
{
	struct firewall_chain *c;
	struct firewall_rule *r;
	char name[64];
	struct words w;

	c = sscanf(line, "-A %63s", name) == 1 ? firewall_chain_find(f, family, table, name) : NULL;
	if (!c)
		return true;
	r = firewall_rule_add(c);
	if (!r || !(r->line = strdup(line)))
		return false;
	if (cut(line, &w))
		take_words(f, c, r, &w);
	snprintf(r->text, sizeof(r->text), "%s -t %s: '%s'", program, table, line);
	snprintf(r->removal, sizeof(r->removal), "%s -t %s -D%s", program, table, line + 2);
	return true;
}

/* ":INPUT DROP [0:0]" */
static bool add_chain(struct firewall *f, const char *family, const char *table, const char *program, const char *line)
{
	static const struct { const char *table; int priority; } tables[] = {
		{"raw", -300}, {"mangle", -150}, {"nat", -100}, {"filter", 0}, {"security", 50},
	};
	struct firewall_chain *c;
	char name[64], policy[16] = "";

	if (sscanf(line, ":%63s %15s", name, policy) < 1)
		return true;
	c = firewall_chain_add(f, family, table, name);
	if (!c)
		return false;
	if (strcmp(policy, "-"))
		c->hook = !strcmp(name, "PREROUTING") ? FIREWALL_PREROUTING :
			  !strcmp(name, "INPUT") ? FIREWALL_INPUT : FIREWALL_NO_HOOK;
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		if (!strcmp(table, tables[i].table))
			c->priority = tables[i].priority;
	c->drops = !strcmp(policy, "DROP");
	c->policy.does = "drops";
	snprintf(c->policy.text, sizeof(c->policy.text), "%s -t %s: policy DROP of %s", program, table, name);
	return true;
}

bool firewall_read_iptables(struct firewall *f, char *text, const char *family, const char *program)
{
	char table[64] = "", *rest = NULL;
	bool ok = true;

	f->match = rule_is;
	/* all chains of a table come before its rules */
	for (char *line = strtok_r(text, "\n", &rest); ok && line; line = strtok_r(NULL, "\n", &rest)) {
		if (line[0] == '*')
			snprintf(table, sizeof(table), "%s", line + 1);
		else if (line[0] == ':')
			ok = add_chain(f, family, table, program, line);
		else if (!strncmp(line, "-A ", 3))
			ok = add_rule(f, family, table, program, line);
	}
	return ok;
}

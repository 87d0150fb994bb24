/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * doctor: packet filter rules that queries to the resolvers would meet. XDP answers before netfilter sees a packet, so the
 * kernel path answers in spite of a block, a rate limit or a redirection there.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hydnsd/doctor/doctor.h"
#include "hydnsd/doctor/firewall.h"
#include "hydnsd/netdev/netdev.h"

#define DNS_PORT     53
#define QUERIES_MAX  512       /* kinds of queries that are walked through the rules */

/* Kinds of queries; and the tables that iptables has made by nftables, which iptables-save prints. */
struct scene {
	struct doctor *d;
	struct firewall_query query[QUERIES_MAX];
	unsigned queries;
	char *own[2];                  /* "*filter\n...", of iptables-save and ip6tables-save */
	const char *filter;            /* being read: "nftables", "iptables", "ip6tables" */
	unsigned findings;
};

/* -- kinds of queries --------------------------------------------------------------------------------------- */
static void add_query(struct scene *s, const struct firewall_query *interface, int family, const char *address,
		      unsigned port)
{
	struct firewall_query *q = &s->query[s->queries];

	if (s->queries == QUERIES_MAX)
		return;
	*q = *interface;
	q->family = family;
	q->port = port;
	snprintf(q->address, sizeof(q->address), "%s", address);
	s->queries++;
}

/* "192.0.2.1:53", "[2001:db8::1]:53"; no interface of hydnsd's receives queries to loopback addresses. */
static void add_service(struct scene *s, const struct firewall_query *interface, const char *service)
{
	const char *sep = strrchr(service, ':');
	bool v6 = service[0] == '[';
	char address[64];

	if (!sep)
		return;
	snprintf(address, sizeof(address), "%.*s", (int)(sep - service) - 2 * v6, service + v6);
	if (strncmp(address, "127.", 4) && strcmp(address, "::1"))
		add_query(s, interface, v6 ? 6 : 4, strcmp(address, "0.0.0.0") && strcmp(address, "::") ? address : "",
			  (unsigned)atoi(sep + 1));
}

/* Adds the known services; if there are none, port 53 at every address. */
static void add_services(struct scene *s, const struct firewall_query *interface)
{
	const json_t *r, *service;
	unsigned before = s->queries;
	size_t i, j;

	json_array_foreach(json_object_get(s->d->status, FIELD(status, resolvers)), i, r)
		json_array_foreach(json_object_get(r, FIELD(resolver, services)), j, service)
			add_service(s, interface, json_string_value(service));
	if (s->queries > before)
		return;
	add_query(s, interface, 4, "", DNS_PORT);
	add_query(s, interface, 6, "", DNS_PORT);
}

static void add_name(struct firewall_query *q, const char *name)
{
	if (q->names < FIREWALL_NAMES)
		snprintf(q->name[q->names++], sizeof(q->name[0]), "%s", name);
}

/* Netfilter sees the bridge or bond instead of its port, and for a tagged frame the VLAN device. */
static void name_interface(const struct scene *s, const struct netdev_link *l, const struct netdev_link *all, size_t n,
			   struct firewall_query *q)
{
	bool replaced = false;

	for (size_t i = 0; i < n; i++) {
		if (l->master && all[i].ifindex == l->master) {
			q->bridged = !strcmp(all[i].kind, "bridge");
			replaced = !strcmp(all[i].kind, "bond") || !strcmp(all[i].kind, "team");
			add_name(q, all[i].name);
		} else if (all[i].lower == l->ifindex && all[i].lower_netnsid < 0 && !strcmp(all[i].kind, "vlan") &&
			   json_is_true(json_object_get(s->d->status, FIELD(status, vlan)))) {
			add_name(q, all[i].name);
		}
	}
	if (!replaced)
		add_name(q, l->name);
}

static void add_queries(struct scene *s)
{
	const struct firewall_query any = { .bridged = true };
	struct netdev_link *all = NULL;
	const json_t *i;
	size_t n = 0, k;

	if (netdev_links(&all, &n))
		n = 0;
	json_array_foreach(s->d->interfaces, k, i)
		for (size_t j = 0; j < n; j++)
			if (!strcmp(all[j].name, json_string_value(i))) {
				struct firewall_query q = { .names = 0 };

				name_interface(s, &all[j], all, n, &q);
				add_services(s, &q);
			}
	free(all);
	if (!s->queries)
		add_services(s, &any);
}

/* -- findings ----------------------------------------------------------------------------------------------- */
/* How to say the rule in the resolver's configuration. */
static void in_the_resolver(const struct doctor *d, const struct firewall_rule *r, char *out, size_t room)
{
	const char *who = r->source[0] ? r->source : "PREFIX";
	char unbound[256], bind[256];

	switch (r->aim) {
	case FIREWALL_AIM_RATE:
		doctor_words(d, out, room, "let Unbound limit them ('ip-ratelimit: NUMBER' in unbound.conf)",
			     "let named limit them ('rate-limit { responses-per-second NUMBER; };' in "
			     "named.conf)");
		break;
	case FIREWALL_AIM_SOURCE:
		snprintf(unbound, sizeof(unbound), "let Unbound keep them out ('access-control: %s deny' in unbound.conf, "
			 "then hydns-unbound-control reload)", who);
		snprintf(bind, sizeof(bind), "let named keep them out ('blackhole { %s; };' in options of named.conf, then "
			 "hydns-rndc reconfig)", who);
		doctor_words(d, out, room, unbound, bind);
		break;
	case FIREWALL_AIM_ADDRESS:
		doctor_words(d, out, room, "let Unbound listen where clients ask (interface: in unbound.conf), and the rule is not "
			     "needed", "let named listen where clients ask (listen-on in named.conf), and the rule is not needed");
		break;
	case FIREWALL_AIM_INTERFACE:
		snprintf(out, room, "take the interface out of hydnsd.conf (interface:), then systemctl reload hydnsd");
		break;
	default:
		doctor_words(d, out, room, "say in unbound.conf who may ask (access-control)",
			     "say in named.conf who may ask (allow-query, allow-recursion, blackhole)");
	}
}

static void acceptance(const struct firewall_chain *c, const char *filter, char *out, size_t room)
{
	if (strcmp(filter, "nftables"))
		snprintf(out, room, "%s -t %s -I %s -p udp --dport %d -j ACCEPT", filter, c->table, c->name, DNS_PORT);
	else
		snprintf(out, room, "nft insert rule %s %s %s udp dport %d accept", c->family, c->table, c->name, DNS_PORT);
}

static void report(const struct firewall_chain *c, const struct firewall_rule *r, void *arg)
{
	char words[640], command[FIREWALL_TEXT], mend[1024];
	struct scene *s = arg;
	bool policy = r == &c->policy;

	s->findings++;
	in_the_resolver(s->d, r, words, sizeof(words));
	if (policy)
		acceptance(c, s->filter, command, sizeof(command));
	else
		snprintf(command, sizeof(command), "%s", r->removal);
	snprintf(mend, sizeof(mend), "%s; if %s: %s", words, policy ? "all clients may ask" : "the rule is not needed",
		 command);
	doctor_add(s->d, "firewall", s->filter, DOCTOR_WARN, mend, "%s %s queries to a resolver%s: those that the kernel "
		   "answers never come there", r->text, r->does, policy ? " that no rule accepts" : "");
}

static void follow(struct scene *s, struct firewall *f, bool whole)
{
	if (!whole) {
		doctor_add(s->d, "firewall", s->filter, DOCTOR_SKIP, NULL, "out of memory");
		return;
	}
	firewall_sort(f);
	s->findings = 0;
	for (unsigned i = 0; i < s->queries; i++)
		firewall_walk(f, &s->query[i], report, s);
	if (!s->findings)
		doctor_add(s->d, "firewall", s->filter, DOCTOR_OK, NULL,
			   "no rule drops, limits or redirects queries to a resolver");
}

/* -- nftables and iptables ----------------------------------------------------------------------------------- */
/* What iptables-save prints of the tables that iptables has made by nftables. */
static bool printed_by_iptables(const char *family, const char *table, void *arg)
{
	const struct scene *s = arg;
	const char *text = s->own[!strcmp(family, "ip6")];
	char line[80];

	if ((strcmp(family, "ip") && strcmp(family, "ip6")) || !text)
		return false;
	snprintf(line, sizeof(line), "\n*%s\n", table);
	return strstr(text, line);
}

static void check_nft(struct scene *s)
{
	static const char *const argv[] = {"nft", "-j", "list", "ruleset", NULL};
	struct firewall f = {0};
	char *text = NULL;
	int err = doctor_run(argv, false, &text);
	json_t *all = err ? NULL : json_loads(text, 0, NULL);

	free(text);
	s->filter = "nftables";
	if (err == -ENOENT)
		doctor_add(s->d, "firewall", s->filter, DOCTOR_SKIP, "apt install nftables, if there are nftables rules",
			   "nft is not installed: nftables rules, if there are any, cannot be listed");
	else if (!all)
		doctor_add(s->d, "firewall", s->filter, DOCTOR_SKIP, "run doctor as root", "nft could not list its rules");
	else
		follow(s, &f, firewall_read_nft(&f, json_object_get(all, "nftables"), printed_by_iptables, s));
	firewall_free(&f);
	json_decref(all);
}

static void check_iptables(struct scene *s, const char *program, const char *family, char **own)
{
	char save[32];
	const char *const argv[] = {save, NULL};
	struct firewall f = {0};
	char *text = NULL;
	int err;

	snprintf(save, sizeof(save), "%s-save", program);
	err = doctor_run(argv, false, &text);
	s->filter = program;
	if (err) {
		doctor_add(s->d, "firewall", program, DOCTOR_SKIP, err == -ENOENT ? NULL : "run doctor as root", "%s",
			   err == -ENOENT ? "not installed" : "could not list its rules");
		return;
	}
	*own = strstr(text, "(nf_tables)") ? strdup(text) : NULL;
	follow(s, &f, firewall_read_iptables(&f, text, family, program));
	firewall_free(&f);
	free(text);
}

void doctor_check_firewall(struct doctor *d)
{
	struct scene *s = calloc(1, sizeof(*s));

	if (!s)
		return;
	s->d = d;
	add_queries(s);
	check_iptables(s, "iptables", "ip", &s->own[0]);
	check_iptables(s, "ip6tables", "ip6", &s->own[1]);
	check_nft(s);
	free(s->own[0]);
	free(s->own[1]);
	free(s);
}

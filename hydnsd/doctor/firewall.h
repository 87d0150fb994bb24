/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What a packet filter would do to DNS queries that the kernel path answers before it. nftables and iptables rules become the
 * same chains; a walk follows one kind of query through these and reports each rule that does not let all such queries
 * through.
 */
#ifndef HYDNSD_DOCTOR_FIREWALL_H
#define HYDNSD_DOCTOR_FIREWALL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define FIREWALL_NAMES 8             /* names under which netfilter may see an interface */
#define FIREWALL_TEXT  256
#define FIREWALL_REDIRECTS "redirects"

/* Which of the queries match. */
enum firewall_match { FIREWALL_NEVER, FIREWALL_SOME, FIREWALL_ALL };

/* A kind of query: over UDP, to one service, by one interface, from any client, the first of its flow. */
struct firewall_query {
	int family;                        /* 4 or 6 */
	char address[64];                  /* the service's; "": not known, or all */
	unsigned port;
	char name[FIREWALL_NAMES][16];     /* the interface, and what lies on it: a bridge, a bond, VLAN devices */
	unsigned names;                    /* 0: any interface but lo */
	bool bridged;                      /* the interface is, or may be, a bridge's port */
	bool untracked;                    /* a rule has taken it out of connection tracking */
};

enum firewall_verdict {
	FIREWALL_GO_ON,                    /* counts, logs, marks */
	FIREWALL_ACCEPT,
	FIREWALL_REFUSE,                   /* drops, rejects, redirects: the query does not reach its service */
	FIREWALL_UNTRACK,
	FIREWALL_JUMP,
	FIREWALL_GOTO,
	FIREWALL_RETURN,
};

/* What a rule is for, for its mend; ADDRESS: it sends queries elsewhere. */
enum firewall_aim {
	FIREWALL_AIM_OTHER, FIREWALL_AIM_SOURCE, FIREWALL_AIM_RATE, FIREWALL_AIM_INTERFACE, FIREWALL_AIM_ADDRESS,
};

struct firewall_rule {
	enum firewall_verdict verdict;
	const char *does;                  /* of FIREWALL_REFUSE: "drops", ..., FIREWALL_REDIRECTS */
	char target[64];                   /* of FIREWALL_JUMP and FIREWALL_GOTO */
	enum firewall_aim aim;
	char source[64];                   /* the only client network that it names, or "" */
	char text[FIREWALL_TEXT];          /* the rule as an operator would find it */
	char removal[FIREWALL_TEXT];       /* the command that removes it */
	const json_t *expressions;         /* nftables: lives as long as the ruleset */
	const json_t *key, *value;         /* of a verdict map: its key, and the element with this verdict */
	char *line;                        /* iptables */
	bool reported;
};

enum firewall_hook { FIREWALL_NO_HOOK, FIREWALL_INGRESS, FIREWALL_PREROUTING, FIREWALL_INPUT };

struct firewall_chain {
	char family[8];                    /* inet, ip, ip6, netdev, bridge */
	char table[64], name[64];
	enum firewall_hook hook;
	int priority;
	bool drops;                        /* its policy */
	char device[16];                   /* of an ingress chain; "": unknown */
	struct firewall_rule *rule;
	size_t rules;
	struct firewall_rule policy;       /* reported like a rule */
};

struct firewall {
	struct firewall_chain *chain;
	size_t chains;
	const json_t *ruleset;             /* nftables: it has the named sets */
	enum firewall_match (*match)(const struct firewall *f, const struct firewall_chain *c,
				     const struct firewall_rule *r, const struct firewall_query *q);
};

/* -- firewall.c -------------------------------------------------------------------------------------------- */
/* NULL: out of memory. The chain or rule is zeroed and lives until the next one is added. */
struct firewall_chain *firewall_chain_add(struct firewall *f, const char *family, const char *table, const char *name);
struct firewall_chain *firewall_chain_find(const struct firewall *f, const char *family, const char *table,
					   const char *name);
struct firewall_rule *firewall_rule_add(struct firewall_chain *c);
void firewall_free(struct firewall *f);
/* Sorts base chains as the kernel calls them. Call it before firewall_walk(). */
void firewall_sort(struct firewall *f);
/* Calls report for each rule or policy, not yet reported, that refuses queries of this kind. */
void firewall_walk(struct firewall *f, const struct firewall_query *q,
		   void (*report)(const struct firewall_chain *, const struct firewall_rule *, void *), void *arg);

/* A rule that redirects is about that alone. */
void firewall_take_refusal(struct firewall_rule *r, const char *does);

/* How one value matches the query. Addresses: "192.0.2.1", "192.0.2.0/24" or "192.0.2.1-192.0.2.9". */
enum firewall_match firewall_not(enum firewall_match m);
enum firewall_match firewall_protocol(const char *value);
enum firewall_match firewall_port(const struct firewall_query *q, long low, long high);
enum firewall_match firewall_interface(const struct firewall_query *q, const char *value, char wildcard);
enum firewall_match firewall_source(const struct firewall_query *q, const char *value);
enum firewall_match firewall_destination(const struct firewall_query *q, const char *value);
enum firewall_match firewall_state(const struct firewall_query *q, const char *value);
enum firewall_match firewall_packet_type(const char *value);

/* -- firewall_nft.c: the rules of "nft -j list ruleset" ----------------------------------------------------- */
/* ruleset must outlive f. skip() is true for tables that are left out. False: out of memory. */
bool firewall_read_nft(struct firewall *f, const json_t *ruleset,
		       bool (*skip)(const char *family, const char *table, void *arg), void *arg);

/* -- firewall_iptables.c: the rules of "iptables-save" or "ip6tables-save", whose text is overwritten ---------- */
/* family: "ip" or "ip6"; program: for the commands of mends, "iptables". False: out of memory. */
bool firewall_read_iptables(struct firewall *f, char *text, const char *family, const char *program);

#endif

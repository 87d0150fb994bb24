/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What the files about struct hydnsd_rules share. */
#ifndef HYDNSD_RULES_RULES_INTERNAL_H
#define HYDNSD_RULES_RULES_INTERNAL_H

#include "hydnsd/rules/rules.h"

#define HYDNSD_NO_RESOLVER 0xff             /* resolver of an ordinal without a live rule */
#define HYDNSD_UNKNOWN 0xff

/* A rule that left the index while a program may still count a hit for it. */
struct hydnsd_retired {
	uint32_t ordinal;
	uint16_t qtype;                /* host order */
	uint8_t resolver;             /* HYDNS_RESOLVERS: nobody's */
	uint8_t rcode;
	uint8_t variant;
	uint8_t flags;
	bool empty;                    /* no record in the answer section */
	bool authoritative;            /* AA */
};

struct hydnsd_rules {
	struct hydns_store_memory memory;
	struct hydns_store *store;
	struct hydns_policy *policy;
	uint64_t seed;
	uint32_t ordinals;
	uint32_t capacity;             /* as set */
	uint32_t fitting;              /* of these, as many as there are octets for: the policy's capacity */
	struct hydnsd_dependencies *dependencies;
	struct hydnsd_missing_table *missing;  /* not ours; or NULL */
	/* by ordinal */
	uint64_t *signature;           /* of the names that it depends on */
	uint32_t *seen;                /* hits already accounted for; of a free ordinal, what a new rule begins with */
	uint32_t *generation;          /* low half, of the offer's stamp */
	uint8_t *resolver;                /* authority or HYDNSD_NO_RESOLVER */
	uint8_t *refresh_percent;      /* of the offerer; HYDNSD_UNKNOWN: taken over from a former hydnsd */
	struct hydns_tallies *tallies; /* kept over a restart, as seen is */
	uint32_t live[HYDNS_RESOLVERS]; /* rules, by authority */
	struct hydnsd_rules_counters counters;
	struct hydnsd_retired *retired;
	uint32_t retired_count, retired_room;
	uint32_t retired_before_grace; /* those that the running grace period covers */
	bool retired_unknown;         /* there was no memory to note one */
	uint64_t grace_ticket;
	uint32_t sweep_cursor;
	uint32_t threshold;
};

/* capacity.c */
/* Where a rule found no slot: fewer rules, if the store is full. */
void hydnsd_rules_fit(struct hydnsd_rules *r);
/* As many rules as fit, once more where they did not: at the end of a sweep. */
void hydnsd_rules_refit(struct hydnsd_rules *r);

/* refresh.c */
/* For a rule's refresh_ms. percent: of its life, the resolver's wish; rate: its hits, as hydns_policy_rate() has them. */
uint32_t hydnsd_rules_refresh_at(const struct hydns_rule *head, uint64_t signature, uint32_t percent, uint64_t rate);
/* Sets it anew, by what is known of the rule's rate now. */
void hydnsd_rules_time_refresh(struct hydnsd_rules *r, uint32_t ordinal, const struct hydns_rule *rule);

/* hits.c */
/* Goes on from what a former hydnsd has counted. After the rules were adopted. */
void hydnsd_hits_take_over(struct hydnsd_rules *r);
/* Accounts the hits of a live rule since it was last looked at, and returns them; the policy hears of them. */
uint32_t hydnsd_hits_account(struct hydnsd_rules *r, uint32_t ordinal, const struct hydns_rule *rule,
			     uint64_t now_ns);
/* The rule is about to leave: account now, and once more after the grace period. */
void hydnsd_hits_retire(struct hydnsd_rules *r, uint32_t ordinal, const struct hydns_rule *rule,
			uint64_t now_ns);

/* A rule that nobody's hits are counted for leaves. */
void hydnsd_hits_discard(struct hydnsd_rules *r, uint32_t ordinal);

/* rules.c */
/* The names that a rule depends on, and their signature; false: it is unreadable. */
bool hydnsd_rules_dependencies(const struct hydnsd_rules *r, const struct hydns_rule *rule, struct hydnsd_dependency_list *out,
			 uint64_t *signature);
/* Before remove(): if the rule is hot, why it leaves is kept. */
void hydnsd_rules_record_removal(struct hydnsd_rules *r, uint32_t handle, enum hydnsd_removal why, uint64_t now_ns);
void hydnsd_rules_remove(struct hydnsd_rules *r, uint32_t handle, uint64_t now_ns);
/* A rule that says the same takes the place of handle's, with all that is known of it. Its handle; 0: no slot is free. */
uint32_t hydnsd_rules_replace(struct hydnsd_rules *r, uint32_t handle, struct hydnsd_answer *a, uint64_t now_ns);

/* ttl_update.c */
/* Does the rule show the withdrawal's RRset with another TTL than the resolver now sends? */
bool hydnsd_rule_needs_ttl_update(const struct hydnsd_withdrawal *w, const struct hydns_rule *rule);
/* Gives the rule that TTL, in its place or by a successor; returns its handle from now on. 0: that can't be done. */
uint32_t hydnsd_rules_update_ttl(struct hydnsd_rules *r, uint32_t handle, const struct hydnsd_withdrawal *w, uint64_t now_ns);

#endif

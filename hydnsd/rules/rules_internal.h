/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What the files about struct hydnsd_rules share. */
#ifndef HYDNSD_RULES_RULES_INTERNAL_H
#define HYDNSD_RULES_RULES_INTERNAL_H

#include "hydnsd/rules/lost.h"
#include "hydnsd/rules/rules.h"

#define HYDNSD_NO_RESOLVER 0xff        /* resolver of an ordinal without a live rule */
#define HYDNSD_UNKNOWN     0xff        /* refresh_percent of a rule taken over from a former hydnsd */
#define HYDNSD_STALE       0xfe        /* ... and of one past its own end, of a resolver that has crashed */

/* A retired rule: it has left the index, but a program may still count a hit for it. */
struct hydnsd_retired {
	uint32_t ordinal;
	uint16_t qtype;                /* host order */
	uint8_t resolver;              /* HYDNS_RESOLVERS: its hits are not counted */
	uint8_t rcode;
	uint8_t variant;
	uint8_t flags;
	bool empty;                    /* no record in the answer section */
	bool authoritative;            /* AA */
	bool stale;                    /* of a resolver that has crashed, and past its own end */
	uint64_t age_ns;               /* of the answer now */
};

/* Of a resolver whose rules outlive it. */
struct hydnsd_stale {
	struct hydnsd_stale_terms terms; /* longest is 0: it is none */
	uint64_t replies;              /* with the stale TTL */
};

struct hydnsd_rules {
	struct hydns_store_memory memory;
	struct hydns_store *store;
	struct hydns_policy *policy;
	uint64_t seed;
	uint32_t ordinals;
	uint32_t capacity;             /* as set */
	uint32_t fitting;              /* as many of these as there are octets for: the policy's capacity */
	struct hydnsd_dependencies *dependencies;
	struct hydnsd_missing_table *missing; /* borrowed; may be NULL */
	/* by ordinal */
	uint64_t *signature;           /* of the names that the rule depends on */
	uint32_t *seen;                /* hits already accounted for; of a free ordinal, where a new rule's count begins */
	uint32_t *generation;          /* of the offer's stamp, low half */
	uint8_t *resolver;             /* index or HYDNSD_NO_RESOLVER */
	uint8_t *refresh_percent;      /* of the offerer, or HYDNSD_UNKNOWN, or HYDNSD_STALE */
	struct hydns_tallies *tallies; /* survive a restart, as seen does */
	uint32_t live[HYDNS_RESOLVERS]; /* rules of each resolver */
	uint32_t kept[HYDNS_RESOLVERS]; /* of these, preloaded ones */
	uint32_t kept_in_all;
	struct hydnsd_lost lost[HYDNS_RESOLVERS];
	struct hydnsd_stale stale[HYDNS_RESOLVERS];
	struct hydnsd_rules_counters counters;
	struct hydnsd_retired *retired;
	uint32_t retired_count, retired_room;
	uint32_t retired_before_grace; /* those that the running grace period covers */
	bool retired_unknown;          /* there was no memory to record one */
	uint64_t grace_ticket;
	uint32_t sweep_cursor;
	uint32_t threshold;
	struct hydnsd_histogram age[HYDNS_RESOLVERS]; /* of answers that the program gave, as known at the next sweep */
};

/* capacity.c */
/* One more preloaded rule of the resolver, or one less. */
void hydnsd_rules_add_kept(struct hydnsd_rules *r, uint32_t resolver, int more);
/* To be called when a rule found no slot: allows fewer rules, if the store is full. */
void hydnsd_rules_fit(struct hydnsd_rules *r);
/* To be called at the end of a sweep: allows more rules again, if there is room. */
void hydnsd_rules_refit(struct hydnsd_rules *r);

/* refresh.c */
/* The refresh_ms of a rule. percent: of its life, as the resolver wants it; rate: of its hits, as hydns_policy_rate() gives
 * it. */
uint32_t hydnsd_rules_refresh_at(const struct hydns_rule *head, uint64_t signature, uint32_t percent, uint64_t rate);
/* Sets it by the rule's present rate. */
void hydnsd_rules_time_refresh(struct hydnsd_rules *r, uint32_t ordinal, const struct hydns_rule *rule);

/* hits.c */
/* Continues the counts of a former hydnsd. Call it after the rules were adopted. */
void hydnsd_hits_take_over(struct hydnsd_rules *r, uint64_t now_ns);
/* Accounts the hits of a live rule since the last time, here and to the policy, and returns them. */
uint32_t hydnsd_hits_account(struct hydnsd_rules *r, uint32_t ordinal, const struct hydns_rule *rule,
			     uint64_t now_ns);
/* The rule is about to leave the index: accounts its hits now, and once more after the grace period. */
void hydnsd_hits_retire(struct hydnsd_rules *r, uint32_t ordinal, const struct hydns_rule *rule,
			uint64_t now_ns);

/* The same for a rule whose hits do not count. */
void hydnsd_hits_discard(struct hydnsd_rules *r, uint32_t ordinal);

/* rules.c */
/* The names that a rule depends on, and their signature. False: the rule is unreadable. */
bool hydnsd_rules_dependencies(const struct hydnsd_rules *r, const struct hydns_rule *rule, struct hydnsd_dependency_list *out,
			 uint64_t *signature);
/* To be called before remove(): records a hot rule as missing. */
void hydnsd_rules_record_removal(struct hydnsd_rules *r, uint32_t handle, enum hydnsd_removal why, uint64_t now_ns);
void hydnsd_rules_remove(struct hydnsd_rules *r, uint32_t handle, uint64_t now_ns);
/* Drops everything that is known here of a rule; the store has its own. */
void hydnsd_rules_forget(struct hydnsd_rules *r, uint32_t ordinal, const struct hydns_rule *rule, uint64_t now_ns);
/* Removes a rule for a better one or for the capacity, and records it as missing if it is hot. */
void hydnsd_rules_evict(struct hydnsd_rules *r, uint32_t ordinal, uint64_t now_ns);
/* When the rule's life is over; monotonic. */
uint64_t hydnsd_rule_expiry_ms(const struct hydns_rule *rule);

/* copy.c */
/* The answer of a rule, to be changed and given to hydnsd_rules_replace(). It borrows from the rule. False: the rule is unreadable, or
 * has records beyond its TTLs. */
bool hydnsd_rule_copy(const struct hydns_rule *rule, struct hydnsd_answer *out);

/* stale.c */
/* Whether the rule outlives its resolver, which has crashed. One that does lets no query pass for refresh from then on. */
bool hydnsd_stale_keeps(struct hydnsd_rules *r, uint32_t ordinal, const struct hydns_rule *rule);
/* Whether it is past its own end already. */
static inline bool hydnsd_stale_is(const struct hydnsd_rules *r, uint32_t ordinal)
{
	return r->refresh_percent[ordinal] == HYDNSD_STALE;
}
/* What becomes of a rule at its end. */
enum hydnsd_stale_fate {
	HYDNSD_STALE_ENDS,
	HYDNSD_STALE_GOES_ON,          /* replaced by one with the stale TTL */
	HYDNSD_STALE_WAITS,            /* for a slot that is free after a grace period */
};
enum hydnsd_stale_fate hydnsd_stale_renew(struct hydnsd_rules *r, uint32_t ordinal, uint64_t now_ns);

/* admit.c */
/* Replaces a rule by one with the same question and resolver, which takes over all that is known of it. Returns the new handle;
 * 0: no slot is free. */
uint32_t hydnsd_rules_replace(struct hydnsd_rules *r, uint32_t handle, struct hydnsd_answer *a, uint64_t now_ns);

/* ttl_update.c */
/* True when the rule shows the withdrawal's RRset with another TTL than the resolver sends now. */
bool hydnsd_rule_needs_ttl_update(const struct hydnsd_withdrawal *w, const struct hydns_rule *rule);
/* Gives the rule that TTL, in place or by a replacement, and returns its handle from now on. 0: that is impossible. */
uint32_t hydnsd_rules_update_ttl(struct hydnsd_rules *r, uint32_t handle, const struct hydnsd_withdrawal *w, uint64_t now_ns);

#endif

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Changes of the resolver's data: which concern rules, and what happens to these. Nothing here is for resolvers. */
#ifndef HYDNS_PLUGIN_CHANGES_CHANGES_H
#define HYDNS_PLUGIN_CHANGES_CHANGES_H

#include <pthread.h>
#include "plugin/page/page.h"

/* -- names.c: which names may stand in a rule, and which have changed --------------------------------- */
struct hydns_names;
struct hydns_names *hydns_names_new(uint32_t capacity, const uint64_t seed[2]);
void hydns_names_free(struct hydns_names *t);
/* For hydns_names_offer(); read it before the answer's data. 0: changes are not recorded. */
uint64_t hydns_names_changes(const struct hydns_names *t);
/* From now on changes are recorded. */
void hydns_names_watch(struct hydns_names *t);
/* What of a name a rule holds or a change concerns: all its data, or the RRset of this type, in host order,
 * as a part of answers to other questions than that one. */
#define HYDNS_NAMES_ALL 0
/* A rule that depends on name (lower case) may live until until_ms. False: the name has changed since changes was read, or
 * changes were not recorded then; from now on they are. */
bool hydns_names_offer(struct hydns_names *t, const uint8_t *name, size_t len, uint16_t what,
		       uint64_t until_ms, uint64_t changes);
/* Records a change. True: a rule that depends on the name may be alive or on its way. */
bool hydns_names_change(struct hydns_names *t, const uint8_t *name, size_t len, uint16_t what,
			uint64_t now_ms);

/* -- rrset_ends.c: how far the ends of RRsets have moved ---------------------------------------------------- */
struct hydns_rrset_ends;
enum hydns_end_move {
	HYDNS_END_LITTLE,     /* rules may stay: the ends of all are at most a second from this one */
	HYDNS_END_LATER,      /* rules need a TTL update: their TTLs are too low */
	HYDNS_END_EARLIER,    /* rules must go: they would outlive the data, or send too high TTLs */
};
struct hydns_rrset_ends *hydns_rrset_ends_new(const uint64_t seed[2]);
void hydns_rrset_ends_free(struct hydns_rrset_ends *t);
/* In the cache, the end of the RRset of this name (lower case) and type (host order) has moved from was to is (wall-clock
 * seconds modulo 2^32), and its data are the same. Copies for different sections have ends of their own. Any thread. */
enum hydns_end_move hydns_rrset_ends_move(struct hydns_rrset_ends *t, const uint8_t *name, size_t len, uint16_t rrtype,
				 enum hydns_section section, uint32_t was, uint32_t is);

/* -- subtrees.c: at and below which names anything was offered ------------------------------------------ */
struct hydns_subtrees;
struct hydns_subtrees *hydns_subtrees_new(const uint64_t seed[2]);
void hydns_subtrees_free(struct hydns_subtrees *t);
/* Counts an offer that depends on the name (lower case, well-formed). */
void hydns_subtrees_offer(struct hydns_subtrees *t, const uint8_t *name, size_t len);
/* How many offers were counted so far that depend on the name, or on one below it; read it before the generation is
 * advanced. */
struct hydns_subtree_offers {
	uint64_t at, below;
};
struct hydns_subtree_offers hydns_subtrees_offers(struct hydns_subtrees *t, const uint8_t *name, size_t len);
/* After that: what is left to withdraw of the scope, NAME or SUBTREE, where the rest of what was counted has been
 * withdrawn. HYDNS_SCOPE_NONE: nothing. */
#define HYDNS_SCOPE_NONE ((enum hydns_scope)0)
enum hydns_scope hydns_subtrees_left(struct hydns_subtrees *t, enum hydns_scope scope, const uint8_t *name, size_t len);
/* What was counted up to offers has been withdrawn, of this scope. */
void hydns_subtrees_withdrawn(struct hydns_subtrees *t, enum hydns_scope scope, const uint8_t *name, size_t len,
			      struct hydns_subtree_offers offers);

/* -- pending.c: withdrawals that wait for hydnsd --------------------------------------------------------- */
#define HYDNS_PENDING_MAX 8                 /* hydnsd needs a grace period for each when it is back */
#define HYDNS_PENDING_ALL UINT32_MAX        /* instead of a name's place */
struct hydns_pending {
	pthread_mutex_t lock;
	unsigned count;
	uint32_t resumed;                /* suspensions that have ended; the first is number 1 */
	uint32_t grace_in;               /* the last suspension of all rules for which a grace period is over */
	bool held;                       /* the resolver has suspended all rules, and will say when they count again */
	struct hydns_withdraw of[HYDNS_PENDING_MAX];
};
/* The suspension in which a withdrawal was added. */
struct hydns_suspension {
	uint32_t number;
	bool grace_over;                 /* one has passed since all rules were suspended */
};
void hydns_pending_init(struct hydns_pending *o);
void hydns_pending_destroy(struct hydns_pending *o);
/* Adds a withdrawal and suspends the rules of this place, or all. False: the list is full, and nothing was done. */
bool hydns_pending_add(struct hydns_pending *o, struct hydns_pages *g, const struct hydns_withdraw *w, uint32_t place,
		    struct hydns_suspension *in);
/* A grace period has passed since _add() has suspended all rules, in this suspension. */
void hydns_pending_grace_over(struct hydns_pending *o, uint32_t suspension);
/* Suspends all rules; the suspension does not end before _release(). */
void hydns_pending_hold(struct hydns_pending *o, struct hydns_pages *g);
void hydns_pending_release(struct hydns_pending *o);
bool hydns_pending_held(struct hydns_pending *o);
/* Link thread: hydnsd reads another page from now on, without rules yet. No withdrawal is pending any more, and the
 * suspension of the former page has ended; one that is held goes on with this page. */
void hydns_pending_forget(struct hydns_pending *o, struct hydns_pages *g);
/* Link thread: the oldest; and: hydnsd has done this one. */
bool hydns_pending_first(struct hydns_pending *o, struct hydns_withdraw *out);
void hydns_pending_done(struct hydns_pending *o, const struct hydns_withdraw *w);
/* Link thread: ends the suspension if no withdrawal is pending, and it is not held. */
bool hydns_pending_resume(struct hydns_pending *o, struct hydns_pages *g);

/* -- rules.c: killing and suspending rules without hydnsd ----------------------------------------------- */
/* When it returns, every rule is dead, except for programs that already run. */
void hydns_plugin_kill_rules(struct hydns_plugin *p);
/* The same until hydnsd has caught up; then the rules that are left count again. */
void hydns_plugin_suspend_rules(struct hydns_plugin *p);
/* The same for the rules that depend on this name (lower case, well-formed) alone. */
void hydns_plugin_mark(struct hydns_plugin *p, const uint8_t *name, size_t len);
/* After the rules were killed for good: when it returns, no kernel answer is sent any more. Waits for a grace period unless
 * one has passed since. */
void hydns_plugin_wait_grace(struct hydns_plugin *p);
/* hydnsd is away, and all rules are dead. */
bool hydns_plugin_dead(struct hydns_plugin *p);
/* Kills and waits as well, but not for good: there may be rules again when hydnsd is back. */
void hydns_plugin_kill_and_wait(struct hydns_plugin *p);
/* Waits until no program runs any more that has read the page before, if there is one that it reads. */
void hydns_plugin_grace(struct hydns_plugin *p);
/* The place of a name (lower case, well-formed) among those that the page marks. */
uint32_t hydns_plugin_place(const struct hydns_plugin *p, const uint8_t *name, size_t len);

/* -- zone.c: the names that stand for a SOA ------------------------------------------------------------------- */
struct hydns_left_out;
/* A version is changing the SOA of the zone of this origin (lower case). */
bool hydns_zone_soa_is_changing(const uint8_t *origin, size_t len);
/* An offer shows the present SOA in place of the one that it depends on so far: it depends on what all such offers of the zone do.
 * False: it does not depend on the SOA by a name of its own. */
bool hydns_zone_depends_on_present(struct hydns_left_out *l, const uint8_t *origin, size_t len);
/* Withdraws these. */
void hydns_plugin_withdraw_present(struct hydns_plugin *p, const uint8_t *origin, size_t len);

/* -- under_way.c --------------------------------------------------------------------------------------- */
/* Whether a version is changing the name (lower case, wire format), or all of a zone that it is in. */
bool hydns_name_is_changing(const uint8_t *name, size_t len);
/* The number of the next version that begins. */
uint64_t hydns_zone_versions_begun(void);

/* -- zone.c -------------------------------------------------------------------------------------------- */
/* Its entries, as in struct hydns_withdraw_names; NULL: it has none. */
const uint8_t *hydns_zone_version_entries(const struct hydns_zone_version *v, size_t *len);
/* The names of which types may come or go in it, or what lies below them: one after the other in wire format, len octets in all. */
const uint8_t *hydns_zone_version_retyped(const struct hydns_zone_version *v, size_t *len);

/* -- withdraw.c ---------------------------------------------------------------------------------------- */
/* Answers that were looked up before are too old to be offered, from now on. Returns the new generation. */
uint64_t hydns_plugin_advance(struct hydns_plugin *p);

/* -- forward.c: the zones that the program may forward --------------------------------------------------- */
struct hydns_forward_list {
	pthread_mutex_t lock;
	struct hydns_plugin_forwards of;     /* its zones are the list's own */
	uint32_t number;                     /* the last that hydnsd was told */
	_Atomic uint32_t changed;            /* how often the list was replaced */
};
void hydns_forward_list_init(struct hydns_forward_list *f);
void hydns_forward_list_destroy(struct hydns_forward_list *f);
/* Link thread: copies the list, to be sent under the number that is returned; until it is known none counts. Without memory the
 * copy is empty. The caller frees copy->zone. */
uint32_t hydns_forward_list_begin(struct hydns_forward_list *f, struct hydns_pages *pages, uint32_t *changed,
				  struct hydns_plugin_forwards *copy);
/* Link thread: hydnsd has it; it counts unless the list has changed meanwhile. */
void hydns_forward_list_known(struct hydns_forward_list *f, struct hydns_pages *pages, uint32_t number, uint32_t changed);

#endif

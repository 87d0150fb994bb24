/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Preloaded zones: a thread asks the resolver itself for all that a zone has answers for, so that these are offered and stay in the
 * kernel until they are withdrawn; and again for what was withdrawn, or came. Nothing here is for resolvers.
 */
#ifndef HYDNS_PLUGIN_PRELOAD_PRELOAD_H
#define HYDNS_PLUGIN_PRELOAD_PRELOAD_H

#include <sys/socket.h>
#include "hydns/nsec3.h"
#include "hydns/ring.h"
#include "hydns/preload.h"
#include "hydns/session.h"
#include "plugin/plugin.h"

/* -- list.c: questions to ask ------------------------------------------------------------------------------ */
struct hydns_preload_entry {
	uint16_t qtype;                /* host order */
	uint8_t variants;              /* a bit each */
	uint8_t name_len;
	uint8_t name[];                /* wire format */
} __attribute__((packed));

/* Zero: empty. */
struct hydns_preload_list {
	uint8_t *octets;
	size_t len, room;
	size_t questions;              /* counting each variant */
	const _Atomic bool *stopping;  /* no more is taken once it is set; NULL: never */
};
void hydns_preload_list_free(struct hydns_preload_list *l);
/* The name of the template for names below this one, to out, HYDNS_NAME_MAX octets. Returns its length; 0: it is too long for a name. */
size_t hydns_preload_below_name(const uint8_t *name, size_t len, uint8_t *out);
/* False: out of memory, or the thread is to end. */
bool hydns_preload_list_append(struct hydns_preload_list *l, const uint8_t *name, size_t len, uint16_t qtype, uint8_t variants);
/* The entry at *at, which moves behind it; NULL: the end. */
const struct hydns_preload_entry *hydns_preload_list_next(const struct hydns_preload_list *l, size_t *at);

/* -- ask.c: asking them ------------------------------------------------------------------------------------ */
struct hydns_preload_asker {
	int fd;                        /* connected to the resolver; -1: closed */
	int stop_fd;                   /* becomes readable when the thread is to end; borrowed */
	uint16_t edns_size;
	uint16_t turn;                 /* part of the next query's ID */
	unsigned at_once;              /* queries under way, at most; 0: as many as it can */
};
/* Opens and connects the socket. *from: its own address. 0 or a negative errno. */
int hydns_preload_asker_open(struct hydns_preload_asker *a, const struct sockaddr *to, socklen_t len, struct sockaddr_storage *from);
void hydns_preload_asker_close(struct hydns_preload_asker *a);
struct hydns_preload_asked {
	size_t asked, replied, refused; /* queries; replies; of these REFUSED */
};
/* Asks the questions from octet at to octet end of the list, and waits for the replies. False: the thread is to end. */
bool hydns_preload_ask(struct hydns_preload_asker *a, const struct hydns_preload_list *l, size_t at, size_t end,
		       struct hydns_preload_asked *out);

/* -- set.c: the names that the program knows to exist (hydns/names.h) ---------------------------------------- */
/* Any thread. Names are in wire format and lower case, at or below the origin of the zone of this number, of origin_len octets. */
struct hydns_name_set;
struct hydns_name_set *hydns_name_set_new(void);         /* NULL: no memory */
void hydns_name_set_free(struct hydns_name_set *s);      /* ignores NULL */
/* Uses this map, which is empty, in place of a former one; closes the descriptor. 0 or a negative errno: then there is none. */
int hydns_name_set_take(struct hydns_name_set *s, int map_fd, const struct hydns_names_request *q);
/* A version is about to be served in which the name or a type of it comes or goes, or what is below it: from now on nothing is said of
 * it and below it. children: the zone may be signed with NSEC. Then the table of children is closed until it has the name, too. */
void hydns_name_set_change(struct hydns_name_set *s, const uint8_t *name, size_t len, size_t origin_len, uint16_t zone, bool children);
/* An answer that may become a template shows this name: a server may compress it otherwise in an answer to a query for the name, one
 * below it, or one below a name above it. So nothing is said of these, as long as the set is there. */
void hydns_name_set_show(struct hydns_name_set *s, const uint8_t *name, size_t len, size_t origin_len, uint16_t zone);
/* The last change so far, by number. */
uint32_t hydns_name_set_now(struct hydns_name_set *s);
/* What the data say of a name that has changed; since: the last change that they show. Of no effect if the name has changed after it. */
void hydns_name_set_settle(struct hydns_name_set *s, const uint8_t *name, size_t len, size_t origin_len, uint16_t zone,
			   struct hydns_name_data data, uint32_t since);
/* Loading: each name that the zone has data for, and which other zones are there below it; then _loaded(), which removes what was not
 * found. The set is to be closed meanwhile. */
struct hydns_name_load {
	uint16_t zone;                 /* its number */
	uint8_t number;                /* differs from the zone's load before */
	uint32_t since;                /* the last change, by number, that its data show */
	size_t origin_len;
};
void hydns_name_set_found(struct hydns_name_set *s, const struct hydns_name_load *load, const uint8_t *name, size_t len,
			  struct hydns_name_data data);
void hydns_name_set_loaded(struct hydns_name_set *s, const struct hydns_name_load *load);
/* Whether another zone begins there, as the load has found. */
bool hydns_name_set_is_foreign(struct hydns_name_set *s, const uint8_t *name, size_t len);
/* A hash of the chain of NSEC3 records comes, or was found, in the zone of this origin: the same of the table. */
void hydns_name_set_hash_comes(struct hydns_name_set *s, const uint8_t *origin, size_t origin_len, const uint8_t hash[HYDNS_SHA1_OCTETS]);
/* How names are hashed, by number (HYDNS_NAMES_HASHING()); and another way in its place, while the set is closed. False: there is none. */
bool hydns_name_set_hashing(struct hydns_name_set *s, unsigned number, struct hydns_nsec3 *out);
void hydns_name_set_hash_so(struct hydns_name_set *s, unsigned number, const struct hydns_nsec3 *how);
/* Puts the children that have come into the table, and opens it. By the thread that loads zones, in time that the whole table takes. */
void hydns_name_set_merge(struct hydns_name_set *s);
/* Takes all children out, before the names of all zones are gathered anew. By that thread. */
void hydns_name_set_empty_table(struct hydns_name_set *s);
/* The question whose answer is the template for a query with DO, which is denied, as the program finds it. False: the zone is not signed,
 * or the program does not know. */
struct hydns_name_template {
	uint16_t zone;                 /* its number */
	uint16_t qtype;                /* HYDNS_BELOW_TYPE: of a probe; HYDNS_HASHED_TYPE: at a hash; else HYDNS_NODATA_TYPE */
	uint16_t asked_qtype;          /* the same, unless nobody can ask for that */
	size_t len;
	uint8_t name[HYDNS_NAME_MAX];
	uint8_t asked[HYDNS_NAME_MAX]; /* as long */
};
bool hydns_name_set_template(struct hydns_name_set *s, const uint8_t *name, size_t len, uint16_t qtype, struct hydns_name_template *out);
/* Whether the program looks at the name itself for the proof that it has no DS. */
bool hydns_name_set_proves_no_ds(struct hydns_name_set *s, const uint8_t *name, size_t len);
/* The present SOA of a zone (soa.h): before another is served, true if a program may be using it; whether this one is of another shape, so
 * that its templates are to go; from now on it is this one; and what an offer says of it. */
bool hydns_name_set_soa_closes(struct hydns_name_set *s, uint16_t zone);
bool hydns_name_set_soa_differs(struct hydns_name_set *s, uint16_t zone, const struct hydns_zone_soa *soa);
void hydns_name_set_soa_is(struct hydns_name_set *s, uint16_t zone, const struct hydns_zone_soa *soa);
bool hydns_name_set_soa(struct hydns_name_set *s, uint16_t zone, bool is_signed, struct hydns_offer_soa *out);
/* Whether it is one without a signature. */
bool hydns_name_set_soa_is_bare(struct hydns_name_set *s, uint16_t zone);
/* There is no set any more. */
void hydns_name_set_drop(struct hydns_name_set *s);
/* Whether the program may rely on the set. A set that has been full stays closed. */
void hydns_name_set_open(struct hydns_name_set *s, bool open);
/* Nobody may rely on it any more. */
void hydns_name_set_close(struct hydns_name_set *s);
struct hydns_name_set_state {
	uint32_t names, room;
	uint32_t children;             /* that the table has room for */
	bool exists, full, open;
	bool table_full;
};
struct hydns_name_set_state hydns_name_set_state(struct hydns_name_set *s);

/* -- preload.c: the thread --------------------------------------------------------------------------------- */
struct hydns_preload;
/* A version of a zone is about to be committed, or the zone to get other data: before rules are withdrawn for it, and after; and it has
 * been: now what it brings is asked for. Any thread. origin: any case. */
/* ... *out: what else there is to do for it. */
struct hydns_preload_effect {
	size_t around;                 /* octets of the origin of another zone, whose denials are to be withdrawn, too; 0: none */
	uint8_t origin[HYDNS_NAME_MAX];
	bool waits;                    /* a program may be using the SOA: a grace period is to pass */
	bool templates;                /* those of the zone that show its present SOA are to be withdrawn */
};
/* Earlier still: the names in which its other data differ are about to be found. What versions of the former ones bring meanwhile is not
 * looked at before the other ones are served. */
void hydns_preload_exchanged(struct hydns_preload *l, const struct hydns_zone_version *v);
void hydns_preload_names_change(struct hydns_preload *l, const struct hydns_zone_version *v, struct hydns_preload_effect *out);
/* As hydns_plugin_names_change_hands() says. */
void hydns_preload_names_change_hands(struct hydns_preload *l, const uint8_t *name, size_t len, bool back,
				      struct hydns_preload_effect *out);
void hydns_preload_version(struct hydns_preload *l, const struct hydns_zone_version *v);
/* And in between: a version that began before the object did has told it no name, so those of the zone are gathered anew. */
void hydns_preload_served(struct hydns_preload *l, const struct hydns_zone_version *v);
void hydns_preload_settled(struct hydns_preload *l, const struct hydns_zone_version *v);
/* Whether the answer to such a question (lower case) as hydns_preload_is_of_template() knows may be a template: the names of its zone
 * are all in the set. wire: the reply, of len octets. name, which is the question's, becomes that where it stands. Any
 * thread. */
struct hydns_preload_template {
	uint16_t qtype;                /* where it stands, as name */
	struct hydns_offer_soa soa;    /* the present one that belongs into it; id 0: none */
	uint8_t origin[HYDNS_NAME_MAX]; /* its zone's */
	size_t origin_len;
};
bool hydns_preload_is_template(struct hydns_preload *l, const struct hydns_question *q, uint8_t *name, const uint8_t *wire, size_t len,
			       struct hydns_preload_template *out);
/* An answer to one of its queries was not offered, because something had changed meanwhile: it asks again. Any thread. name: lower case. */
void hydns_preload_again(struct hydns_preload *l, const uint8_t *name, size_t len, uint16_t qtype, uint8_t variant);

/* -- demand.c: templates that are asked for when a query would have been answered from them ------------------- */
#define HYDNS_DEMAND_MOST   256        /* questions that wait */
#define HYDNS_DEMAND_PLACES 4096U      /* of questions that were asked lately: more share places, and may be asked again earlier */
struct hydns_demand {
	struct hydns_preload_list wanted;
	unsigned count;
	struct hydns_demanded {
		uint32_t tag;          /* of the question; 0: none */
		uint32_t version;      /* of its zone */
		uint32_t when_ms;
		uint32_t wait_ms;      /* until it may be asked again; longer each time */
	} lately[HYDNS_DEMAND_PLACES];
};
/* The question whose answer would have been the template. Whether it is to be asked: not if it was lately, in this version of its zone,
 * nor if too many wait. key: of the question. */
bool hydns_demand_is_due(struct hydns_demand *d, uint64_t key, uint32_t version, uint32_t now_ms);

/* Ends the thread, and frees; ignores NULL. */
void hydns_preload_stop(struct hydns_preload *l);

#endif

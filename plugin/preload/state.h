/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The preloading thread's object: what its files share. Nothing here is for others. */
#ifndef HYDNS_PLUGIN_PRELOAD_STATE_H
#define HYDNS_PLUGIN_PRELOAD_STATE_H

#include "plugin/internal.h"
#include "plugin/preload/preload.h"

enum hydns_preload_state {
	HYDNS_PRELOAD_WANTED,  /* it is to be loaded */
	HYDNS_PRELOAD_LOADING,
	HYDNS_PRELOAD_LOADED,
	HYDNS_PRELOAD_ABSENT,  /* the resolver does not have it, or not yet */
	HYDNS_PRELOAD_REFUSED, /* hydnsd has no more room */
	HYDNS_PRELOAD_DENIED,  /* the resolver's access list does not admit its own address */
};

/* Names one after the other, in a form that who has them knows. */
struct hydns_preload_octets {
	uint8_t *octets;
	size_t len;
};

struct hydns_preload_zone {
	uint8_t name[HYDNS_NAME_MAX];
	size_t len;
	enum hydns_preload_state state;
	_Atomic bool changed;          /* as a whole */
	/* under the lock of struct hydns_preload: of a change that is not over */
	struct hydns_preload_octets coming;   /* entries as in struct hydns_withdraw_names */
	struct hydns_preload_octets retyping; /* names of which types come or go */
	struct hydns_preload_octets hashes;   /* that come to the chain of NSEC3 records, or whose records change */
	uint32_t before;               /* hydns_name_set_now() before the first of these was told */
	unsigned under_way;            /* versions that were told and are not served; what they bring is looked at after the last */
	bool comes_whole;
	unsigned told;                 /* versions so far, also such as had begun before the object was */
	unsigned uncommitted;          /* those of under_way that are not served */
	struct hydns_zone_soa soa;     /* of the last of these; of is NULL: not known */
	const void *soa_of;            /* the data of which the zone's SOA was last found */
	bool soa_wanted;               /* the present SOA is closed, and is to be found */
	bool complete;                 /* all of its names are in the set */
	size_t questions, asked;       /* of this load */
	uint64_t failed;               /* questions of this load whose answers are not in the kernel, though they could be */
	uint64_t began_ms, loaded_ms;
	size_t names;                  /* when they were last gathered, */
	size_t children;               /* and of them and those above, if the proofs tell of these */
	_Atomic int proofs;            /* enum hydns_proofs, likewise */
	_Atomic uint8_t hashing;       /* HYDNS_NAMES_HASHING(); 0: none that the program computes */
	_Atomic uint32_t versions;     /* that were served since the start */
	bool gathered;                 /* the set has had names of it */
	uint8_t loads;                 /* how often they were gathered */
};

struct hydns_preload {
	struct hydns_plugin *p;
	struct hydns_preload_options o;
	struct hydns_preload_zone *zone; /* o.zones of them, in the resolver's order, */
	struct hydns_preload_zone **by_name; /* and in one by which they are found */
	struct hydns_preload_asker asker;
	pthread_t thread;
	_Atomic bool stopping;
	int stop_fd, wake_fd;          /* eventfds */
	bool full;                     /* hydnsd refused an answer because there may be no more */
	bool denied;                   /* the resolver refused a whole batch */
	bool all;                      /* any rule may have gone */
	struct hydns_preload_list lost; /* what hydnsd says was withdrawn */
	bool unanswered;               /* of what was asked last something was neither offered nor found unfit */
	struct hydns_preload_list put_off; /* what is to be asked again for that, from put_off_until_ms on */
	uint64_t put_off_until_ms;
	unsigned put_off_for_ms;       /* longer each time, until nothing is left */
	struct hydns_name_set *set;
	bool set_refused;              /* hydnsd makes none: no name is said not to exist */
	uint64_t from;                 /* the number of the first version that is told before it is served */
	uint64_t noted_ms;
	pthread_mutex_t lock;
	/* under the lock, of all zones: */
	struct hydns_preload_octets changed;   /* entries as above, to be asked for */
	struct hydns_preload_list stale;       /* questions whose answers a change had overtaken before they were offered */
	struct hydns_preload_octets retyped; /* names of which types have come or gone, to be looked at */
	struct hydns_demand demand;
	_Atomic bool soas_wanted;      /* of any zone */
	uint64_t merge_from_ms;        /* not before that is the table of children merged: a large one takes its time */
};

/* The zone's number, in the set of names. */
static inline uint16_t hydns_preload_number(const struct hydns_preload *l, const struct hydns_preload_zone *z)
{
	return (uint16_t)(z - l->zone);
}

/* -- preload.c ---------------------------------------------------------------------------------------------- */
/* The preloaded zone of this origin, or that the name is in; NULL: none. */
struct hydns_preload_zone *hydns_preload_zone_at(const struct hydns_preload *l, const uint8_t *origin, size_t len);
struct hydns_preload_zone *hydns_preload_zone_of(const struct hydns_preload *l, const uint8_t *name, size_t len);
/* Takes what there is, and leaves nothing. The caller frees it. */
struct hydns_preload_octets hydns_preload_take(struct hydns_preload *l, struct hydns_preload_octets *from);

/* -- names.c: the set of names ------------------------------------------------------------------------------ */
/* Whether the set has all of the zone's names, now and in each version that is served. */
bool hydns_preload_is_complete(struct hydns_preload *l, const struct hydns_preload_zone *z);
/* Of a zone that is about to be asked for: its names. Those of others that a new set has lost come with them. */
void hydns_preload_load_names(struct hydns_preload *l, struct hydns_preload_zone *z);
/* Names of which types have come or gone are looked at, before anything is asked: what is offered then may stay. */
void hydns_preload_look_again(struct hydns_preload *l);

/* What has come to the table of children is merged into it, if it is time. */
void hydns_preload_merge(struct hydns_preload *l);

/* -- soas.c: present SOAs ----------------------------------------------------------------------------------- */
/* A version was told, which has the lock; *out: what it asks for. And it is served. */
void hydns_preload_soa_changes(struct hydns_preload *l, struct hydns_preload_zone *z, const struct hydns_zone_version *v,
			       struct hydns_preload_effect *out);
void hydns_preload_soa_served(struct hydns_preload *l, struct hydns_preload_zone *z);
/* Finds out what the zone's SOA is, unless a version is under way: then it is to be found later. Without the lock. */
void hydns_preload_find_soa(struct hydns_preload *l, struct hydns_preload_zone *z);
/* It is to be found, and until then a version waits for the programs that may be using what it was. Without the lock. */
void hydns_preload_want_soa(struct hydns_preload *l, struct hydns_preload_zone *z);
/* ... of all zones whose is not known. */
void hydns_preload_find_soas(struct hydns_preload *l);

/* -- demand.c ----------------------------------------------------------------------------------------------- */
/* Asks for the templates that were missed. False: the thread is to end. */
bool hydns_preload_ask_demanded(struct hydns_preload *l);

/* -- versions.c --------------------------------------------------------------------------------------------- */
/* Names of which types come or go with a version, one after the other in wire format. children: as of hydns_name_set_change(). */
void hydns_preload_tell_set(struct hydns_preload *l, const struct hydns_preload_zone *z, const uint8_t *names, size_t len, bool children);
/* The same of hashes of the chain. */
void hydns_preload_tell_hashes(struct hydns_preload *l, const struct hydns_preload_zone *z, const uint8_t *hashes, size_t len);
void hydns_preload_forget(struct hydns_preload_octets *n);

#endif

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Parked queries: takes them from the program, keeps them until the resolver says that the resolution is over, and has them
 * replayed (replay.h). doc/parking.md has the sequence. Nothing here waits, but hydnsd_parking_stop() for a second.
 */
#ifndef HYDNSD_PARKING_PARKING_H
#define HYDNSD_PARKING_PARKING_H

#include "hydnsd/daemon/daemon.h"
#include "hydnsd/parking/parked.h"
#include "hydnsd/rules/histogram.h"

/* Frames of a resolver. */
struct hydnsd_parking_counts {
	uint64_t replayed, answered, passed; /* answered and passed add up to replayed */
	uint64_t timed_out;            /* they had waited as long as they may */
	uint64_t discarded;            /* of these, dropped, as the resolver drops its reply to them; the others were replayed */
	uint64_t refused;              /* times that a link had no room for an answer: it was replayed once more, or lost */
	uint64_t lost;                 /* could not be replayed, or were refused again and again */
	struct hydnsd_histogram waited; /* those that a rule answered, from their coming to the answer */
};

struct hydnsd_parking_resolver {
	uint32_t park_ms;              /* how long a frame may wait; 0: not at all */
	bool discards;                 /* nobody answers one that has waited longer */
	uint32_t most, per_question;   /* what the program may park; 0: nothing */
	int64_t may_pass;              /* frames that may pass to its sockets now; negative: a debt */
	uint64_t queries, unread;      /* that it has read, by its own count; frames that passed since, without as many read */
	uint64_t read_ms;              /* when that count last rose */
	uint64_t refused_ms;           /* when a link last refused one of its answers */
	uint64_t held_until_ms;        /* due frames are not replayed before; 0: they are */
	uint32_t held_for;             /* the process that shall be ready again by then */
	struct hydnsd_parking_counts counts;
	struct hydns_parking_count base; /* the program's counts when the resolver came */
};

struct hydnsd_parking {
	struct hydnsd_parked *parked;
	struct hydnsd_watch *watch;
	uint64_t looked_ms;            /* for questions that are no longer under way */
	uint64_t paced_ms;             /* when frames without a rule were last looked at */
	bool paused;                   /* the kill switch, in this round: no rule answers */
	uint32_t turn;                 /* the resolver whose frames are replayed first, in this round */
	bool hurry;                    /* at the end: frames pass without a pause */
	struct hydnsd_parking_resolver of[HYDNS_RESOLVERS];
};

/* Takes what a former hydnsd has left; the first round of work replays it. */
int hydnsd_parking_start(struct hydnsd *d, char *why, size_t room);
/* Before the program is detached or left alone: nothing is parked any more, and what was is replayed, within a second. */
void hydnsd_parking_stop(struct hydnsd *d);

/* Before the program leaves an interface, whose frames can't come in again after that: replays all, without a pause. */
void hydnsd_parking_leave(struct hydnsd *d);

/* A resolver gets an index that another may have had. */
void hydnsd_parking_begin(struct hydnsd *d, uint32_t i);
/* It is ready: the program may park for it, within the limits of its HELLO and of the option. */
void hydnsd_parking_allow(struct hydnsd *d, uint32_t i);
/* It is not, or its plugin has gone: nothing more is parked, and what was is due. */
void hydnsd_parking_forbid(struct hydnsd *d, uint32_t i);

/* Its plugin has said goodbye: the resolver reloads, or it ends. It still reads queries, but leaves those unanswered whose resolutions
 * it will end. So nothing more is parked, and what was waits until its process is ready again, HYDNSD_PARKING_HELD_MS at most. */
#define HYDNSD_PARKING_HELD_MS 2000
void hydnsd_parking_hold(struct hydnsd *d, uint32_t i, uint32_t process);
/* Whether due frames are not replayed now. */
bool hydnsd_parking_holds(const struct hydnsd *d, uint32_t i);

/* A plugin says that a resolution has ended. To be called when the offers that came before are rules. */
void hydnsd_parking_over(struct hydnsd *d, uint32_t i, uint64_t key);
/* A query that was forwarded, with its frame behind the record: it waits while its question is open. */
void hydnsd_parking_take(struct hydnsd *d, const struct hydns_parked *record);
/* Reads what the program has parked. */
void hydnsd_parking_drain(struct hydnsd *d);
/* A forwarded question has ended: what waits for it is due. */
void hydnsd_parking_ended(struct hydnsd *d, uint32_t i, uint64_t key);
/* Each round of the loop, at least every 50 ms, after the rings were read: takes, replays. Returns how long the loop may sleep, in
 * ms; -1: for ever. */
int hydnsd_parking_work(struct hydnsd *d);
/* At least every 50 ms: shows the program that hydnsd works. */
void hydnsd_parking_beat(struct hydnsd *d);

/* Queries of a resolver that wait now, in hydnsd or on their way to it. */
uint32_t hydnsd_parking_pending(struct hydnsd *d, uint32_t i);
/* What the program has counted for the resolver since it has its index. */
void hydnsd_parking_program_counts(struct hydnsd *d, uint32_t i, struct hydns_parking_count *out);

#endif

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The parked queries that hydnsd has taken from the program: for each question under way its frames, oldest first. A frame
 * waits until it is due, and then until it is taken, to be replayed. Without I/O, so it is tested on plain memory. One thread.
 */
#ifndef HYDNSD_PARKING_PARKED_H
#define HYDNSD_PARKING_PARKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include "hydns/parking.h"

struct hydnsd_parked;

TAILQ_HEAD(hydnsd_parked_frames, hydnsd_parked_frame);
struct hydnsd_parked_frame {
	TAILQ_ENTRY(hydnsd_parked_frame) next;   /* of the question */
	TAILQ_ENTRY(hydnsd_parked_frame) by_age; /* while it waits: of the resolver, as they came */
	struct hydnsd_parked_question *question;
	uint32_t refused;              /* how often a link had no room for its answer */
	bool again;                    /* it has none now */
	struct hydns_parked record;
	uint8_t octet[];               /* the frame, right behind its record */
};

/* Where a question stands that has due frames. */
enum hydnsd_due {
	HYDNSD_NOT_DUE,
	HYDNSD_DUE_FRESH,              /* nobody has looked whether a rule answers it */
	HYDNSD_DUE_PACED,              /* there was no rule */
	HYDNSD_DUE_LISTS
};

struct hydnsd_parked_question {
	LIST_ENTRY(hydnsd_parked_question) chain;
	TAILQ_ENTRY(hydnsd_parked_question) all;
	TAILQ_ENTRY(hydnsd_parked_question) next_due;
	uint64_t key;                  /* with the resolver's seed */
	uint32_t resolver;
	uint32_t waiting, due;         /* frames */
	enum hydnsd_due list;
	uint64_t gone_ns;              /* since when nothing says that it is under way; 0: something does */
	struct hydnsd_parked_frames waiting_frames, due_frames;
};

/* most: frames of all resolvers. secret: places questions in a table, so that nobody can choose some with one place. */
struct hydnsd_parked *hydnsd_parked_new(uint32_t most, uint64_t secret);
void hydnsd_parked_free(struct hydnsd_parked *p);

/* Copies a record and its frame, which is due at once or waits. False: there are as many as may be, or no memory. */
bool hydnsd_parked_put(struct hydnsd_parked *p, const struct hydns_parked *record, bool due);

/* -- what makes frames due --------------------------------------------------------------------------------- */
/* The resolution of this question has ended. */
void hydnsd_parked_over(struct hydnsd_parked *p, uint32_t resolver, uint64_t key);
/* Nothing of this resolver may wait any more. */
void hydnsd_parked_over_all(struct hydnsd_parked *p, uint32_t resolver);
/* Frames of this resolver that came before this time. Returns how many. */
uint32_t hydnsd_parked_time_out(struct hydnsd_parked *p, uint32_t resolver, uint64_t before_ns);
/* The same, but they are dropped, each after dropped() has seen it; those that are due already are not. */
uint32_t hydnsd_parked_discard(struct hydnsd_parked *p, uint32_t resolver, uint64_t before_ns,
			       void (*dropped)(const struct hydns_parked *record, void *arg), void *arg);
/* Looks at the next questions, at most so many; those are due for which under_way() has been false for HYDNSD_GONE_NS. */
#define HYDNSD_GONE_NS (20 * HYDNS_NS_PER_MS)
void hydnsd_parked_look(struct hydnsd_parked *p, uint64_t now_ns, uint32_t budget,
			bool (*under_way)(void *arg, uint32_t resolver, uint64_t key), void *arg);

/* -- due frames -------------------------------------------------------------------------------------------- */
/* The first question of one of the lists; NULL: there is none. */
struct hydnsd_parked_question *hydnsd_parked_first(struct hydnsd_parked *p, uint32_t resolver, enum hydnsd_due list);
struct hydnsd_parked_question *hydnsd_parked_next(const struct hydnsd_parked_question *q);
/* Puts a question with due frames at the end of this list. */
void hydnsd_parked_move(struct hydnsd_parked *p, struct hydnsd_parked_question *q, enum hydnsd_due list);
/* Gives the oldest due frames, at most so many, to the caller, who ends each by hydnsd_parked_drop(). Returns how many. The
 * question is gone when it had no others. */
uint32_t hydnsd_parked_take(struct hydnsd_parked *p, struct hydnsd_parked_question *q, struct hydnsd_parked_frame **out,
			    uint32_t most);
void hydnsd_parked_drop(struct hydnsd_parked *p, struct hydnsd_parked_frame *f);
/* Puts it back instead: it is due again. False: no memory; it is still taken. */
bool hydnsd_parked_again(struct hydnsd_parked *p, struct hydnsd_parked_frame *f);

/* Gives the oldest waiting frame of a question to the caller, who ends it by hydnsd_parked_drop(), or puts it back so that it is
 * due; the others go on waiting. NULL: there is none. */
struct hydnsd_parked_frame *hydnsd_parked_pull(struct hydnsd_parked *p, uint32_t resolver, uint64_t key);

/* -- looking ----------------------------------------------------------------------------------------------- */
uint32_t hydnsd_parked_count(const struct hydnsd_parked *p);                     /* all frames, also taken ones */
uint32_t hydnsd_parked_waiting(const struct hydnsd_parked *p, uint32_t resolver); /* frames that are not due */
uint32_t hydnsd_parked_of(const struct hydnsd_parked *p, uint32_t resolver);      /* waiting, due, taken */
uint32_t hydnsd_parked_questions(const struct hydnsd_parked *p);
size_t hydnsd_parked_bytes(const struct hydnsd_parked *p);
/* The oldest frame of a question; there is one. */
const struct hydnsd_parked_frame *hydnsd_parked_oldest(const struct hydnsd_parked_question *q);
void hydnsd_parked_each(const struct hydnsd_parked *p, void (*fn)(const struct hydnsd_parked_question *q, void *arg), void *arg);

/* The question that a record's frame asks. */
struct hydnsd_parked_asked {
	uint8_t name[HYDNS_NAME_MAX];  /* lower case */
	uint16_t qtype;                /* network order */
};
/* False: the lengths of the record do not fit each other. */
bool hydnsd_parked_read(const struct hydns_parked *record, struct hydnsd_parked_asked *out);

#endif

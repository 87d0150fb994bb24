/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Doubly linked queues of dense numbers, the newest at the head; and sets of queues, where an id is in at most one queue. */
#ifndef HYDNS_SIM_QUEUE_H
#define HYDNS_SIM_QUEUE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define QUEUE_NONE UINT32_MAX
#define QUEUES_MAX 4

struct queue_links {                   /* shared by all queues of a set, one element an id */
	uint32_t newer, older;
};

struct queue {
	uint32_t head, tail, count;    /* head: newest */
};

static inline void queue_init(struct queue *q)
{
	*q = (struct queue){ QUEUE_NONE, QUEUE_NONE, 0 };
}

static inline void queue_push(struct queue *q, struct queue_links *l, uint32_t id)
{
	l[id] = (struct queue_links){ QUEUE_NONE, q->head };
	if (q->head != QUEUE_NONE)
		l[q->head].newer = id;
	else
		q->tail = id;
	q->head = id;
	q->count++;
}

static inline void queue_remove(struct queue *q, struct queue_links *l, uint32_t id)
{
	if (l[id].newer != QUEUE_NONE)
		l[l[id].newer].older = l[id].older;
	else
		q->head = l[id].older;
	if (l[id].older != QUEUE_NONE)
		l[l[id].older].newer = l[id].newer;
	else
		q->tail = l[id].newer;
	q->count--;
}

struct queues {
	struct queue queue[QUEUES_MAX]; /* the first means "in none" and is empty */
	struct queue_links *link;
	uint8_t *where;                /* by id: index of its queue */
};

static inline void queues_free(struct queues *s)
{
	free(s->link);
	free(s->where);
}

/* False without memory; call queues_free() then as well. */
static inline bool queues_init(struct queues *s, uint32_t ids)
{
	for (int i = 0; i < QUEUES_MAX; i++)
		queue_init(&s->queue[i]);
	s->link = malloc(ids * sizeof(*s->link));
	s->where = calloc(ids, sizeof(*s->where));
	return s->link && s->where;
}

static inline void queues_leave(struct queues *s, uint32_t id)
{
	queue_remove(&s->queue[s->where[id]], s->link, id);
	s->where[id] = 0;
}

static inline void queues_enter(struct queues *s, uint32_t id, int where)
{
	queue_push(&s->queue[where], s->link, id);
	s->where[id] = (uint8_t)where;
}

#endif

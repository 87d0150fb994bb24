/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Doubly linked queues over dense numbers; an id is in one queue of a set at most. Newest at the head. */
#ifndef HYDNS_SIM_QUEUE_H
#define HYDNS_SIM_QUEUE_H

#include <stdint.h>
#include <stdlib.h>

#define QUEUE_NONE UINT32_MAX

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

#endif

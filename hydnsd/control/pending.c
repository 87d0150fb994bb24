/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Parked queries: limits, counts, and what they wait for. */
#include "hydnsd/control/pending.h"

#include <arpa/inet.h>
#include <stdlib.h>

#include "hydnsd/control/forwards.h"
#include "hydnsd/control/report.h"
#include "hydnsd/control/text.h"
#include "hydnsd/daemon/clock.h"
#include "hydnsd/parking/parking.h"

static json_t *number(uint64_t n)
{
	return json_integer((json_int_t)n);
}

json_t *hydnsd_pending_limits(struct hydnsd *d, uint32_t i)
{
	static const struct hydnsd_parking_resolver none;
	const struct hydnsd_parking_resolver *r = d->parking ? &d->parking->of[i] : &none;

	return json_pack("{s:o, s:o, s:o, s:o}", "waiting", number(hydnsd_parking_pending(d, i)), "most", number(r->most),
		"per_question", number(r->most ? r->per_question : 0), "park_ms", number(r->park_ms));
}

json_t *hydnsd_pending_counts(struct hydnsd *d, uint32_t i)
{
	static const struct hydnsd_parking_counts none;
	const struct hydnsd_parking_counts *c = d->parking ? &d->parking->of[i].counts : &none;
	struct hydns_parking_count program;
	json_t *spilled = json_object();

	hydnsd_parking_program_counts(d, i, &program);
	for (unsigned n = 0; n < HYDNS_SPILLS; n++)
		json_object_set_new(spilled, hydns_spill_name((enum hydns_spill)n), number(program.spilled[n]));
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "parked", number(program.parked), "spilled", spilled,
		"replayed", number(c->replayed), "answered", number(c->answered), "waited", hydnsd_report_histogram(&c->waited, HYDNSD_SCALE_WAIT), "passed", number(c->passed),
		"timed_out", number(c->timed_out), "discarded", number(c->discarded), "refused", number(c->refused), "lost", number(c->lost));
}

size_t hydnsd_pending_bytes(const struct hydnsd *d)
{
	return d->parking ? hydnsd_parked_bytes(d->parking->parked) : 0;
}

/* -- pending ---------------------------------------------------------------------------------------------- */
struct gathering {
	const struct hydnsd_parked_question **at;
	uint32_t count, room;
};

static void gather(const struct hydnsd_parked_question *q, void *arg)
{
	struct gathering *g = arg;

	if (g->count < g->room)
		g->at[g->count++] = q;
}

static int most_first(const void *a, const void *b)
{
	const struct hydnsd_parked_question *x = *(const struct hydnsd_parked_question *const *)a;
	const struct hydnsd_parked_question *y = *(const struct hydnsd_parked_question *const *)b;
	uint32_t n = x->waiting + x->due, m = y->waiting + y->due;

	return n < m ? 1 : n > m ? -1 : 0;
}

static json_t *question(struct hydnsd *d, const struct hydnsd_parked_question *q)
{
	const struct hydns_parked *record = &hydnsd_parked_oldest(q)->record;
	char name[HYDNSD_NAME_TEXT], type[HYDNSD_TYPE_TEXT];
	uint64_t now = hydnsd_now_ns();
	struct hydnsd_parked_asked asked;

	if (!hydnsd_parked_read(record, &asked))
		return NULL;
	return json_pack("{s:s, s:s, s:i, s:i, s:s, s:i, s:s, s:o}", "name", hydnsd_name_text(asked.name, record->name_len, name),
		"type", hydnsd_type_text(ntohs(asked.qtype), type), "variant", (int)record->variant,
		"authority", (int)q->resolver, "identity", d->resolver[q->resolver].hello.identity,
		"waiting", (int)(q->waiting + q->due), "upstream", hydnsd_forwards_upstream(d, q->resolver, q->key),
		"age_ms", number(now > record->at_ns ? (now - record->at_ns) / HYDNS_NS_PER_MS : 0));
}

json_t *hydnsd_report_pending(struct hydnsd *d, uint32_t limit)
{
	uint32_t all = d->parking ? hydnsd_parked_questions(d->parking->parked) : 0;
	struct gathering g = { .at = calloc(all + 1, sizeof(*g.at)), .room = all };
	json_t *list = json_array();

	if (g.at && all)
		hydnsd_parked_each(d->parking->parked, gather, &g);
	qsort(g.at, g.count, sizeof(*g.at), most_first);
	for (uint32_t n = 0; n < g.count && n < limit; n++)
		json_array_append_new(list, question(d, g.at[n]));
	free(g.at);
	return json_pack("{s:o, s:o}", "waiting", number(d->parking ? hydnsd_parked_count(d->parking->parked) : 0),
		"questions", list);
}

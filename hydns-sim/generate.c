/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydns-sim/generate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BITS53 9007199254740992.0

struct alias {                         /* A. J. Walker, "An efficient method for generating discrete random variables
					* with general distributions", ACM TOMS 3(3), 1977 */
	double keep;
	uint32_t other;
};

struct generator {
	const struct sim_workload *w;
	struct sim_trace *out;
	uint64_t random;
	struct alias *alias;
	uint32_t *name;                /* by rank */
	uint32_t *night;               /* by rank, the other order of the day */
	uint32_t fresh;                /* next id of a name that never repeats */
	double at_s, churn_at_s;
};

static uint64_t draw(struct generator *g)
{
	uint64_t z = g->random += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

static double uniform(struct generator *g)
{
	return (double)(draw(g) >> 11) / BITS53;
}

static uint32_t below(struct generator *g, uint32_t n)
{
	return (uint32_t)((draw(g) >> 32) * n >> 32);
}

static double waiting(struct generator *g, double rate)
{
	return -log(1 - uniform(g)) / rate;
}

/* -- ranks ------------------------------------------------------------------------------------------------- */
static void fill_alias(struct alias *alias, double *p, uint32_t *work, uint32_t n)
{
	uint32_t small = 0, large = n;

	for (uint32_t i = 0; i < n; i++)
		if (p[i] < 1)
			work[small++] = i;
		else
			work[--large] = i;
	while (small && large < n) {
		uint32_t s = work[--small], l = work[large];

		alias[s] = (struct alias){ p[s], l };
		p[l] -= 1 - p[s];
		if (p[l] < 1) {
			large++;
			work[small++] = l;
		}
	}
	while (small)
		alias[work[--small]] = (struct alias){ 1, 0 };
	for (; large < n; large++)
		alias[work[large]] = (struct alias){ 1, 0 };
}

static bool make_alias(struct generator *g)
{
	uint32_t n = g->w->names;
	double *p = malloc(n * sizeof(*p)), sum = 0;
	uint32_t *work = malloc(n * sizeof(*work));

	g->alias = malloc(n * sizeof(*g->alias));
	if (p && work && g->alias) {
		for (uint32_t i = 0; i < n; i++)
			sum += p[i] = pow(i + 1 + g->w->plateau, -g->w->zipf);
		for (uint32_t i = 0; i < n; i++)
			p[i] *= n / sum;
		fill_alias(g->alias, p, work, n);
	}
	free(p);
	free(work);
	return p && work && g->alias;
}

static uint32_t draw_rank(struct generator *g)
{
	uint32_t i = below(g, g->w->names);

	return uniform(g) < g->alias[i].keep ? i : g->alias[i].other;
}

/* -- names ------------------------------------------------------------------------------------------------- */
static bool make_orders(struct generator *g)
{
	uint32_t n = g->w->names;

	g->name = malloc(n * sizeof(*g->name));
	g->night = malloc(n * sizeof(*g->night));
	if (!g->name || !g->night)
		return false;
	for (uint32_t i = 0; i < n; i++)
		g->name[i] = g->night[i] = i;
	for (uint32_t i = n - 1; i; i--) {
		uint32_t j = below(g, i + 1), id = g->night[i];

		g->night[i] = g->night[j];
		g->night[j] = id;
	}
	return true;
}

static bool set_ttl(struct generator *g, uint32_t id)
{
	return sim_trace_set_ttl(g->out, id, g->w->ttl[below(g, g->w->ttls)]);
}

static void swap(uint32_t *name, uint32_t a, uint32_t b)
{
	uint32_t id = name[a];

	name[a] = name[b];
	name[b] = id;
}

/* Swaps two names, at ranks uniform in their logarithm: so popular names change as well. */
static bool churn(struct generator *g)
{
	double span = log(g->w->names);

	while (g->w->churn > 0 && g->churn_at_s <= g->at_s) {
		/* draw the second one first: C leaves the order open, and a seed must always give the same */
		uint32_t b = (uint32_t)exp(uniform(g) * span) - 1, a = (uint32_t)exp(uniform(g) * span) - 1;

		swap(g->name, a, b);
		if (!sim_trace_swap(g->out, (uint64_t)(g->at_s * 1e6), a, b))
			return false;
		g->churn_at_s += waiting(g, g->w->churn);
	}
	return true;
}

static uint32_t draw_name(struct generator *g, double progress)
{
	uint32_t rank = draw_rank(g);
	double night = g->w->day > 0 ? 0.5 - 0.5 * cos(2 * M_PI * g->w->day * progress) : 0;

	return night > 0 && uniform(g) < night ? g->night[rank] : g->name[rank];
}

static bool draw_fresh(struct generator *g, uint32_t *id)
{
	*id = g->fresh++;
	return set_ttl(g, *id);
}

/* Draws one request; progress: the generated part of the trace, 0 to 1. */
static bool draw_request(struct generator *g, double progress, uint32_t *id)
{
	const struct sim_workload *w = g->w;

	if (w->flash_at > 0 && progress >= w->flash_at && uniform(g) < 0.5) {
		*id = g->out->marked;
		return true;
	}
	if (uniform(g) < w->fresh)
		return draw_fresh(g, id);
	*id = draw_name(g, progress);
	return true;
}

static bool draw_all(struct generator *g)
{
	const struct sim_workload *w = g->w;
	uint32_t id;

	for (uint32_t i = 0; i < w->requests; i++) {
		double progress = (double)i / w->requests, rate = w->rate;
		bool scanned = progress >= w->scan_from && progress < w->scan_to;

		if (w->rate_at > 0 && progress >= w->rate_at)
			rate *= w->rate_factor;
		/* A scan adds requests; the others go on at their own rate. */
		if (scanned)
			rate /= 1 - w->scan;
		g->at_s += waiting(g, rate);
		if (!churn(g) || !(scanned && uniform(g) < w->scan ? draw_fresh(g, &id) : draw_request(g, progress, &id)) ||
		    !sim_trace_add(g->out, (uint64_t)(g->at_s * 1e6), id))
			return false;
	}
	return true;
}

bool sim_generate(const struct sim_workload *w, struct sim_trace *out)
{
	struct generator g = { .w = w, .out = out, .random = w->seed, .fresh = w->names + 1 };
	bool good;

	sim_trace_init(out);
	good = make_alias(&g) && make_orders(&g);
	for (uint32_t id = 0; good && id <= w->names; id++)
		good = set_ttl(&g, id);
	if (w->flash_at > 0)
		out->marked = w->names;
	/* with a day or a flash crowd the names have more than one order */
	out->ranks = w->day > 0 || w->flash_at > 0 ? 0 : w->names;
	good = good && draw_all(&g);
	free(g.alias);
	free(g.name);
	free(g.night);
	if (!good)
		sim_trace_free(out);
	return good;
}

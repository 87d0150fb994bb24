/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/monitor/findings.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ldns/ldns.h>

#include "hydns/reasons.h"
#include "offload-policy/monitor.h"

/* The next item, or NULL when there is no room. */
static struct hydnsd_finding *next(struct hydnsd_findings *out, uint64_t least, uint64_t most)
{
	struct hydnsd_finding *f;

	if (out->count == HYDNSD_FINDINGS)
		return NULL;
	f = &out->item[out->count++];
	f->least = least;
	f->most = most;
	return f;
}

/* -- heavy hitters --------------------------------------------------------------------------------------------- */
static void network_text(uint64_t key, char *out, size_t room)
{
	uint8_t octet[8], addr[16] = { 0 };
	char text[HYDNSD_ADDRESS_TEXT];
	bool ipv4;

	memcpy(octet, &key, sizeof(octet));
	ipv4 = octet[7] == HYDNS_NETWORK_IPV4;
	if (ipv4) {
		addr[10] = addr[11] = 0xff;
		memcpy(addr + 12, octet, 3);
	} else {
		memcpy(addr, octet, 7);
	}
	snprintf(out, room, "%s/%d", hydnsd_address_text(addr, text), ipv4 ? 24 : 56);
}

static void clients(const void *map, uint32_t cpus, struct hydnsd_findings *out)
{
	struct hydns_heavy_found top[HYDNSD_FINDINGS];
	size_t n = hydns_heavy_top(map, cpus, top, HYDNSD_FINDINGS);

	for (size_t i = 0; n != SIZE_MAX && i < n; i++) {
		struct hydnsd_finding *f = next(out, top[i].least, top[i].most);

		network_text(top[i].key, f->what, sizeof(f->what));
	}
}

/* Length of the name in wire format that begins here, 0 if it has no end within its room: it was being written. */
static size_t name_len(const uint8_t *wire, size_t room)
{
	for (size_t at = 0; at < room; at += 1 + wire[at])
		if (!wire[at])
			return at + 1;
	return 0;
}

static void suffixes(const void *map, uint32_t cpus, struct hydnsd_findings *out)
{
	const struct hydns_suffix_set *all = map;
	struct hydns_heavy_found top[HYDNSD_FINDINGS];
	size_t sets = (size_t)HYDNS_HEAVY_SETS * cpus, n;
	struct hydns_heavy_set *keys = calloc(sets, sizeof(*keys));

	if (!keys)
		return;
	for (size_t i = 0; i < sets; i++)
		keys[i] = all[i].keys;
	n = hydns_heavy_top(keys, cpus, top, HYDNSD_FINDINGS);
	free(keys);
	for (size_t i = 0; n != SIZE_MAX && i < n; i++) {
		const uint8_t *wire = all[(size_t)top[i].set * cpus + top[i].cpu].name[top[i].entry];
		size_t len = name_len(wire, HYDNS_SUFFIX_MOST);
		char text[HYDNSD_NAME_TEXT];

		if (len)
			snprintf(next(out, top[i].least, top[i].most)->what, HYDNSD_FINDING_TEXT, "%s", hydnsd_name_text(wire, len, text));
	}
}

/* -- figures ---------------------------------------------------------------------------------------------------- */
struct count {
	uint64_t n;
	const char *word;
	uint32_t number;
};

static int most_first(const void *a, const void *b)
{
	const struct count *x = a, *y = b;

	if (x->n != y->n)
		return x->n < y->n ? 1 : -1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static void add_types(const struct hydns_figures *f, struct hydnsd_findings *out)
{
	struct count c[HYDNS_FIGURE_TYPES];
	char text[HYDNSD_TYPE_TEXT];

	for (uint32_t i = 0; i < HYDNS_FIGURE_TYPES; i++)
		c[i] = (struct count){ .n = f->type[i], .number = i };
	qsort(c, HYDNS_FIGURE_TYPES, sizeof(*c), most_first);
	for (uint32_t i = 0; i < HYDNSD_FINDINGS && c[i].n; i++)
		snprintf(next(out, c[i].n, c[i].n)->what, HYDNSD_FINDING_TEXT, "%s",
			 c[i].number == HYDNS_FIGURE_TYPES - 1 ? "others" : hydnsd_type_text((uint16_t)c[i].number, text));
}

static void add_sizes(const struct hydns_figures *f, struct hydnsd_findings *out)
{
	struct count c[2 * HYDNS_FIGURE_SIZES];

	for (uint32_t i = 0; i < HYDNS_FIGURE_SIZES; i++) {
		c[2 * i] = (struct count){ .n = f->query_size[i], .word = "query", .number = 1U << i };
		c[2 * i + 1] = (struct count){ .n = f->reply_size[i], .word = "reply", .number = 1U << i };
	}
	qsort(c, 2 * HYDNS_FIGURE_SIZES, sizeof(*c), most_first);
	for (uint32_t i = 0; i < HYDNSD_FINDINGS && c[i].n; i++)
		snprintf(next(out, c[i].n, c[i].n)->what, HYDNSD_FINDING_TEXT, "%s %u", c[i].word, c[i].number);
}

static void rcode_text(uint32_t rcode, char out[HYDNSD_FINDING_TEXT])
{
	const ldns_lookup_table *known = ldns_lookup_by_id(ldns_rcodes, (int)rcode);

	if (known)
		snprintf(out, HYDNSD_FINDING_TEXT, "%s", known->name);
	else
		snprintf(out, HYDNSD_FINDING_TEXT, "RCODE%u", rcode);
}

static void add_rcodes(const struct hydns_figures *f, struct hydnsd_findings *out)
{
	struct count c[HYDNS_FIGURE_RCODES];

	for (uint32_t i = 0; i < HYDNS_FIGURE_RCODES; i++)
		c[i] = (struct count){ .n = f->rcode[i], .number = i };
	qsort(c, HYDNS_FIGURE_RCODES, sizeof(*c), most_first);
	for (uint32_t i = 0; i < HYDNSD_FINDINGS && c[i].n; i++)
		rcode_text(c[i].number, next(out, c[i].n, c[i].n)->what);
}

static void add_amplification(const struct hydns_figures *f, struct hydnsd_findings *out)
{
	const uint64_t percent = f->query_octets ? f->reply_octets * 100 / f->query_octets : 0;
	const struct count c[] = {
		{ f->replies, "replies", 0 }, { f->query_octets, "octets of queries", 0 }, { f->reply_octets, "octets of replies", 0 },
		{ percent, "percent of the queries' octets", 0 },
	};

	for (size_t i = 0; f->replies && i < sizeof(c) / sizeof(*c); i++)
		snprintf(next(out, c[i].n, c[i].n)->what, HYDNSD_FINDING_TEXT, "%s", c[i].word);
}

static void sum_figures(const void *map, uint32_t cpus, struct hydns_figures *sum)
{
	const struct hydns_figures *each = map;

	memset(sum, 0, sizeof(*sum));
	for (uint32_t cpu = 0; cpu < cpus; cpu++)
		for (size_t w = 0; w < sizeof(*sum) / sizeof(__u64); w++)
			((__u64 *)sum)[w] += ((const __u64 *)&each[cpu])[w];
}

/* -- sample ------------------------------------------------------------------------------------------------------ */
static void sample(const void *map, uint32_t cpus, struct hydnsd_findings *out)
{
	const struct hydns_query_sample *s = map;
	char client[HYDNSD_ADDRESS_TEXT], name[HYDNSD_NAME_TEXT], type[HYDNSD_TYPE_TEXT];

	for (size_t i = 0; i < (size_t)HYDNS_QUERY_SAMPLES * cpus && out->count < HYDNSD_FINDINGS; i++, s++) {
		bool named = s->name_len && name_len(s->name, sizeof(s->name)) == s->name_len;

		if (!s->number || s->reason >= HYDNS_REASONS)
			continue;
		snprintf(next(out, 1, 1)->what, HYDNSD_FINDING_TEXT, "%s %s %s %s", hydnsd_address_text(s->client, client),
			 named ? hydnsd_name_text(s->name, s->name_len, name) : "-", named ? hydnsd_type_text(ntohs(s->qtype), type) : "-",
			 hydns_reason_name((enum hydns_reason)s->reason));
	}
}

/* -- all of them --------------------------------------------------------------------------------------------------- */
void hydnsd_findings_make(enum hydns_analyser a, const void *map, uint32_t cpus, struct hydnsd_findings *out)
{
	static void (*const of_figures[HYDNS_ANALYSERS])(const struct hydns_figures *, struct hydnsd_findings *) = {
		[HYDNS_ANALYSER_types] = add_types, [HYDNS_ANALYSER_sizes] = add_sizes, [HYDNS_ANALYSER_rcodes] = add_rcodes,
		[HYDNS_ANALYSER_amplification] = add_amplification,
	};
	static void (*const of_map[HYDNS_ANALYSERS])(const void *, uint32_t, struct hydnsd_findings *) = {
		[HYDNS_ANALYSER_clients] = clients, [HYDNS_ANALYSER_suffixes] = suffixes, [HYDNS_ANALYSER_sample] = sample,
	};
	struct hydns_figures sum;

	out->count = 0;
	if (of_map[a]) {
		of_map[a](map, cpus, out);
	} else {
		sum_figures(map, cpus, &sum);
		of_figures[a](&sum, out);
	}
}

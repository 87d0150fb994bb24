/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* hydnsd and the program: what the program notes of queries while hydnsd's option monitor is on. */
#ifndef HYDNS_MONITOR_ABI_H
#define HYDNS_MONITOR_ABI_H

#include "hydns/common.h"
#include "hydns/distinct.h"
#include "hydns/heavy.h"

/* --- always ------------------------------------------------------------------------------------------- */
/* Windows by CPU: the program writes one while hydnsd reads and clears the other. */
#define HYDNS_WINDOWS 2

struct hydns_window {
	__u8 clients[HYDNS_DISTINCT_REGISTERS];
	__u8 names[HYDNS_DISTINCT_REGISTERS];
};

/* --- while a condition holds ---------------------------------------------------------------------------- */
enum hydns_analyser {
#define HYDNS_ANALYSER(name, by, conditions, text) HYDNS_ANALYSER_##name,
#include "hydns/analysers.def"
#undef HYDNS_ANALYSER
	HYDNS_ANALYSERS
};

/* The maps of analysers, all by CPU. Their names begin so. */
#define HYDNS_ANALYSIS_PREFIX "hydns_an_"
enum hydns_analysis_map {
	HYDNS_ANALYSIS_CLIENTS,        /* hydns_an_client: HYDNS_HEAVY_SETS struct hydns_heavy_set */
	HYDNS_ANALYSIS_SUFFIXES,       /* hydns_an_suffix: HYDNS_HEAVY_SETS struct hydns_suffix_set */
	HYDNS_ANALYSIS_FIGURES,        /* hydns_an_figure: one struct hydns_figures */
	HYDNS_ANALYSIS_SAMPLE,         /* hydns_an_sample: HYDNS_QUERY_SAMPLES struct hydns_query_sample */
	HYDNS_ANALYSIS_MAPS
};

/* The key of a client's network in CLIENTS: the first 7 octets of an IPv6 address (/56) and 0; or 3 of an IPv4 address (/24), four
 * times 0, and HYDNS_NETWORK_IPV4. In memory order. */
#define HYDNS_NETWORK_IPV4 4

/* A suffix is the last two labels of a name, or three if the second last has at most three octets, as in co.uk; fewer if that is
 * longer than HYDNS_SUFFIX_MOST. Its key is a hash. */
#define HYDNS_SUFFIX_LABELS 2
#define HYDNS_SUFFIX_SHORT  3
#define HYDNS_SUFFIX_MOST   40
struct hydns_suffix_set {
	struct hydns_heavy_set keys;
	__u8 name[HYDNS_HEAVY_ENTRIES][HYDNS_SUFFIX_MOST];     /* of each entry: wire format, lower case */
};

#define HYDNS_FIGURE_TYPES 257         /* 256: all that are greater */
#define HYDNS_FIGURE_SIZES 14          /* messages of up to 2^n octets and more than 2^(n-1) */
#define HYDNS_FIGURE_RCODES 16
struct hydns_figures {
	__u64 type[HYDNS_FIGURE_TYPES];
	__u64 query_size[HYDNS_FIGURE_SIZES], reply_size[HYDNS_FIGURE_SIZES];
	__u64 rcode[HYDNS_FIGURE_RCODES];
	__u64 query_octets, reply_octets, replies;             /* of answered queries: DNS messages */
};

#define HYDNS_QUERY_SAMPLES 8
struct hydns_query_sample {
	__u64 number;                  /* the CPU's queries up to this one; of the first sample, all of them. 0: there is none */
	__u8  client[16];
	__u16 qtype;                   /* network order */
	__u8  reason;
	__u8  name_len;                /* 0: it has none */
	__u8  reserved[4];
	__u8  name[256];               /* lower case */
};

#endif

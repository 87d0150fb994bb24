/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Traces from files. */
#ifndef HYDNS_SIM_READ_H
#define HYDNS_SIM_READ_H

#include "hydns-sim/trace.h"

enum sim_format { SIM_FORMAT_AUTO, SIM_FORMAT_PCAP, SIM_FORMAT_DNSTAP, SIM_FORMAT_DNSPERF };
#define SIM_READ_ERROR 512

struct sim_read_options {
	enum sim_format format;        /* auto: by the file's first octets */
	uint32_t ttl;                  /* seconds, of questions whose answer is not seen */
	double rate;                   /* requests a second of a file without times */
};
struct sim_read_counts {
	uint64_t frames;               /* packets, messages or lines */
	uint64_t queries, answers;
	uint64_t ignored;              /* that are neither */
};

bool sim_format_from_name(const char *name, uint32_t *out);
/* Reads the queries of clients and, where they are there, the TTLs of their answers. 0, or -1 with *error saying
 * what is wrong and how to mend it. */
int sim_read(const char *path, const struct sim_read_options *o, struct sim_trace *out,
	     struct sim_read_counts *counts, char error[SIM_READ_ERROR]);

#endif

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
	uint64_t ignored;              /* frames that are neither query nor answer */
};

bool sim_format_from_name(const char *name, uint32_t *out);
/* Reads the clients' queries and, if the file has answers, their TTLs. Returns 0, or -1 when *error says what is wrong and how
 * to mend it. */
int sim_read(const char *path, const struct sim_read_options *o, struct sim_trace *out,
	     struct sim_read_counts *counts, char error[SIM_READ_ERROR]);

#endif

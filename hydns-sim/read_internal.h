/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What the readers of the single formats share. */
#ifndef HYDNS_SIM_READ_INTERNAL_H
#define HYDNS_SIM_READ_INTERNAL_H

#include "hydns-sim/read.h"

struct names {                         /* question -> id */
	struct name *name;
	uint64_t mask;
	uint32_t count;
};

struct reader {
	const char *path;
	const struct sim_read_options *options;
	struct sim_trace *out;
	struct sim_read_counts *counts;
	char *error;
	struct names *names;
	uint64_t begun_us;             /* of the first query */
	bool begun;
};

/* -- read_common.c ----------------------------------------------------------------------------------------- */
bool read_names_init(struct names *n);
void read_names_free(struct names *n);
int read_fail(struct reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A DNS message seen at this time. Negative without memory, after read_fail(). */
int read_message(struct reader *r, const uint8_t *wire, size_t len, uint64_t at_us);
/* A question, as struct dns_message has it, asked at this time. */
int read_query(struct reader *r, const uint8_t *question, uint32_t len, uint64_t at_us);

/* -- one file a format ------------------------------------------------------------------------------------- */
int read_pcap(struct reader *r);
int read_dnstap(struct reader *r);
int read_dnsperf(struct reader *r);

#endif

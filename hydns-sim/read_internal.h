/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What the readers of the single formats share. */
#ifndef HYDNS_SIM_READ_INTERNAL_H
#define HYDNS_SIM_READ_INTERNAL_H

#include "hydns-sim/read.h"

struct reader {
	const char *path;
	const struct sim_read_options *options;
	struct sim_trace *out;
	struct sim_read_counts *counts;
	char *error;
	struct names *names;           /* question -> id */
	uint64_t begun_us;             /* of the first query */
	bool begun;
};

int read_fail(struct reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A DNS message seen at this time. Negative without memory, after read_fail(). */
int read_message(struct reader *r, const uint8_t *wire, size_t len, uint64_t at_us);
/* A question, as struct dns_message has it, asked at this time. */
int read_query(struct reader *r, const uint8_t *question, uint32_t len, uint64_t at_us);

int read_pcap(struct reader *r);
int read_dnstap(struct reader *r);
int read_dnsperf(struct reader *r);

#endif

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The host's reserved ports (Linux Documentation/networking/ip-sysctl.rst, ip_local_reserved_ports): those that the kernel
 * gives to no socket that asks for any port. Queries to upstream leave by packet rings from the longest run of them.
 */
#ifndef HYDNS_PORTS_H
#define HYDNS_PORTS_H

#include <stdbool.h>

#define HYDNS_RESERVED_PORTS  "/proc/sys/net/ipv4/ip_local_reserved_ports"
#define HYDNS_PORTS_LEAST     4096U    /* of a run: 12 bits to guess */
#define HYDNS_PORTS_LOWEST    1024U    /* below are those of services */
#define HYDNS_PORTS_HIGHEST   65535U
#define HYDNS_PORTS_ADVICE    "16384-32767"   /* 14 bits, below Linux's own range, which begins at 32768 */

struct hydns_port_run {
	unsigned first, count;
};

/* Reads digits, which are a port; *text then stands behind them. */
static inline bool hydns_read_port(const char **text, unsigned *port)
{
	const char *at = *text;
	unsigned n = 0;

	while (*at >= '0' && *at <= '9' && n <= HYDNS_PORTS_HIGHEST)
		n = n * 10 + (unsigned)(*at++ - '0');
	if (at == *text || n > HYDNS_PORTS_HIGHEST)
		return false;
	*text = at;
	*port = n;
	return true;
}

/* Reads one "first-last" or "port", up to the comma or the end behind it; *text then stands behind the comma. */
static inline bool hydns_read_run(const char **text, struct hydns_port_run *run)
{
	unsigned first, last;

	if (!hydns_read_port(text, &first))
		return false;
	last = first;
	if (**text == '-') {
		++*text;
		if (!hydns_read_port(text, &last))
			return false;
	}
	if (first > last || (**text && **text != ',' && **text != '\n'))
		return false;
	*text += **text == ',';
	run->first = first;
	run->count = last - first + 1;
	return true;
}

/* The longest run in a list as the kernel writes it: "8080,16384-32767"; of several, the first. False: the text is none, or
 * there is no run of HYDNS_PORTS_LEAST ports from HYDNS_PORTS_LOWEST on; *run is then the longest so far all the same. */
static inline bool hydns_longest_run(const char *text, struct hydns_port_run *run)
{
	*run = (struct hydns_port_run){ 0, 0 };
	while (*text && *text != '\n') {
		struct hydns_port_run r;

		if (!hydns_read_run(&text, &r))
			return false;
		if (r.first < HYDNS_PORTS_LOWEST) {
			const unsigned below = HYDNS_PORTS_LOWEST - r.first;

			r.first = HYDNS_PORTS_LOWEST;
			r.count = r.count > below ? r.count - below : 0;
		}
		if (r.count > run->count)
			*run = r;
	}
	return run->count >= HYDNS_PORTS_LEAST;
}

#endif

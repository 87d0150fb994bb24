/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* hydnsd and the program: what the program notes of queries while hydnsd's option monitor is on. */
#ifndef HYDNS_MONITOR_ABI_H
#define HYDNS_MONITOR_ABI_H

#include "hydns/distinct.h"

/* Windows by CPU: the program writes one while hydnsd reads and clears the other. */
#define HYDNS_WINDOWS 2

struct hydns_window {
	__u8 clients[HYDNS_DISTINCT_REGISTERS];
	__u8 names[HYDNS_DISTINCT_REGISTERS];
};

#endif

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What the options of `hydnsctl capture' mean. */
#ifndef HYDNSD_CAPTURE_OPTIONS_H
#define HYDNSD_CAPTURE_OPTIONS_H

#include "hydns/capture.h"
#include "hydnsd/ctl/common.h"

struct capture_bounds {
	uint64_t packets;              /* 0: no bound */
	uint64_t seconds;              /* 0: no bound */
	uint64_t octets;               /* of the file */
};

/* False: one is wrong, and the error is printed. */
bool capture_options(const struct ctl *c, struct hydns_capture_filter *filter, struct capture_bounds *bounds);

#endif

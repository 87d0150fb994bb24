/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Reads a zone's file in master format (RFC 1035 section 5), record by record. */
#ifndef HYDNSD_CTL_ESTIMATE_ZONE_FILE_H
#define HYDNSD_CTL_ESTIMATE_ZONE_FILE_H

#include "hydnsd/ctl/estimate/zone.h"

#define CTL_ZONE_WHY 512

struct ctl_zone_file {
	const char *path;
	const char *origin;            /* of relative names until the file's first $ORIGIN; NULL: not given */
	/* Called now and then. share: of the file that has been read, 0 to 1. NULL: nobody is told. */
	void (*progress)(const char *path, uint64_t records, double share);
};

/* Opens *z, which is the caller's to close. The zone is that of the first record, its SOA. False: *z is closed, and why has the file,
 * the line if it is one's, and what helps. */
bool ctl_zone_read(const struct ctl_zone_file *file, struct ctl_zone *z, char why[CTL_ZONE_WHY]);

#endif

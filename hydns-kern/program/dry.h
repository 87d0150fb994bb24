/* SPDX-License-Identifier: GPL-2.0-only */
/* The return value of a dry run: two reasons in one number. */
#ifndef HYDNS_KERN_PROGRAM_DRY_H
#define HYDNS_KERN_PROGRAM_DRY_H

/* reason: the one that a packet would have. beneath: the one that it would have if the program were neither paused nor
 * without rules; in both of these states hydns_xdp reads no query. */
#define HYDNS_DRY_RESULT(reason, beneath) ((reason) | (beneath) << 8)
#define HYDNS_DRY_REASON(result)          ((result) & 0xff)
#define HYDNS_DRY_BENEATH(result)         ((result) >> 8 & 0xff)

#endif

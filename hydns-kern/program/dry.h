/* SPDX-License-Identifier: GPL-2.0-only */
/* What a dry run returns: two reasons in one number. */
#ifndef HYDNS_KERN_PROGRAM_DRY_H
#define HYDNS_KERN_PROGRAM_DRY_H

/* reason: what a packet would have. beneath: the same, but not looking whether the program is paused or without rules, of
 * which no query is read. */
#define HYDNS_DRY_RESULT(reason, beneath) ((reason) | (beneath) << 8)
#define HYDNS_DRY_REASON(result)          ((result) & 0xff)
#define HYDNS_DRY_BENEATH(result)         ((result) >> 8 & 0xff)

#endif

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Which questions preloading asks of a name of a zone. BIND's plugin asks them (bind-patches/plugin/preload.c), hydnsctl counts them
 * before (hydnsd/ctl/estimate).
 */
#ifndef HYDNS_PRELOAD_H
#define HYDNS_PRELOAD_H

#include <stdbool.h>
#include "hydns/common.h"
#include "hydns/names.h"

#define HYDNS_PRELOAD_VARIANTS (HYDNS_VARIANTS + 1U)   /* that each question is asked in */
#define HYDNS_PRELOAD_ALL      ((1U << HYDNS_PRELOAD_VARIANTS) - 1)

/* Whether data of this type are asked for. Proofs and signatures come with other answers, and by themselves are seldom asked for. */
static inline bool hydns_preload_asks(__u16 type)
{
	return type != HYDNS_TYPE_RRSIG && type != HYDNS_TYPE_NSEC && type != HYDNS_TYPE_NSEC3 && type != HYDNS_TYPE_NONE;
}

/* What a name has that more is asked for than its own data. */
struct hydns_preload_found {
	bool cname, ns, ds;
};

static inline void hydns_preload_look_at(struct hydns_preload_found *f, __u16 type)
{
	f->cname |= type == HYDNS_TYPE_CNAME;
	f->ns |= type == HYDNS_TYPE_NS;
	f->ds |= type == HYDNS_TYPE_DS;
}

/* Whether the answer to names below it is asked for, too: of an origin and of a delegation (names.h). */
static inline bool hydns_preload_below(const struct hydns_preload_found *f)
{
	return f->ns;
}

/* Whether the proof is asked for that there is no DS: of a delegation of a signed zone, in the variants with DO. */
#define HYDNS_PRELOAD_PROOFS   (1U << HYDNS_VARIANT_DO | 1U << (HYDNS_VARIANT_DO | HYDNS_VARIANT_NO_RD))
static inline bool hydns_preload_no_ds(const struct hydns_preload_found *f, bool is_origin, bool is_signed)
{
	return is_signed && f->ns && !f->ds && !is_origin;
}

/* Of an alias also what it leads to is asked for, of a delegation its referral, of an origin what is said of a type that it does not have
 * (names.h). Writes the types, and returns how many. */
#define HYDNS_PRELOAD_MORE 3
static inline unsigned hydns_preload_more(const struct hydns_preload_found *f, bool is_origin, __u16 type[HYDNS_PRELOAD_MORE])
{
	bool cut = f->ns && !is_origin;
	unsigned n = 0;

	if (is_origin)
		type[n++] = HYDNS_NODATA_TYPE;
	if (f->cname || cut) {
		type[n++] = HYDNS_TYPE_A;
		type[n++] = HYDNS_TYPE_AAAA;
	}
	return n;
}

#endif

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Whether the RDATA of an RR has the layout of its type. */
#ifndef HYDNSD_RULES_RDATA_H
#define HYDNSD_RULES_RDATA_H

#include "hydnsd/rules/wire.h"

enum hydnsd_rdata { HYDNSD_RDATA_GOOD, HYDNSD_RDATA_BAD, HYDNSD_RDATA_META };

/* META: a type that is never in the sections of an answer (OPT, TSIG, types of questions). */
enum hydnsd_rdata hydnsd_rdata_check(const struct hydnsd_message *m, const struct hydnsd_rr *rr,
				     struct hydnsd_marks *marks);

#endif

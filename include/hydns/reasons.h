/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Outcomes of a packet, numbered by their place in reasons.def. */
#ifndef HYDNS_REASONS_H
#define HYDNS_REASONS_H

enum hydns_reason {
#define HYDNS_REASON(name, text) HYDNS_R_##name,
#include "hydns/reasons.def"
#undef HYDNS_REASON
	HYDNS_REASONS
};

#endif

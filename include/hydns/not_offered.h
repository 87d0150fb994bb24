/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Why an answer is kept from the kernel, numbered by its place in not_offered.def. */
#ifndef HYDNS_NOT_OFFERED_H
#define HYDNS_NOT_OFFERED_H

enum hydns_not_offered_why {
#define HYDNS_NOT_OFFERED(name, text) HYDNS_NOT_OFFERED_##name,
#include "hydns/not_offered.def"
#undef HYDNS_NOT_OFFERED
	HYDNS_NOT_OFFERED_REASONS
};

#endif

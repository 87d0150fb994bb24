/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Why an answer is kept from the kernel, numbered by its place in kept.def. */
#ifndef HYDNS_KEPT_H
#define HYDNS_KEPT_H

enum hydns_kept_why {
#define HYDNS_KEPT(name, text) HYDNS_KEPT_##name,
#include "hydns/kept.def"
#undef HYDNS_KEPT
	HYDNS_KEPT_REASONS
};

#endif

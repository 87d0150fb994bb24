/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What `status' and `stats' say of a resolver's parked queries (protocol.def). */
#ifndef HYDNSD_CONTROL_PENDING_H
#define HYDNSD_CONTROL_PENDING_H

#include <jansson.h>
#include "hydnsd/daemon/daemon.h"

json_t *hydnsd_pending_limits(struct hydnsd *d, uint32_t i);
json_t *hydnsd_pending_counts(struct hydnsd *d, uint32_t i);
/* Memory of parked queries, in octets. */
size_t hydnsd_pending_bytes(const struct hydnsd *d);

#endif

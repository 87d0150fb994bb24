/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Of what the program consists, for "status". */
#ifndef HYDNSD_CONTROL_COMPOSED_H
#define HYDNSD_CONTROL_COMPOSED_H

#include <jansson.h>

#include "hydnsd/daemon/daemon.h"

json_t *hydnsd_composed(struct hydnsd *d);

#endif

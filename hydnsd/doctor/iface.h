/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What the checks of one interface share. all: every link of this namespace. mode: in which hydnsd has attached, or "". */
#ifndef HYDNSD_DOCTOR_IFACE_H
#define HYDNSD_DOCTOR_IFACE_H

#include "hydnsd/doctor/doctor.h"
#include "hydnsd/netdev/netdev.h"

void doctor_check_xdp(struct doctor *d, const struct netdev_link *l, const struct netdev_link *all, size_t n, const char *mode);

#endif

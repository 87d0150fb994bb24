/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What porter.c (hydnsd's side) and porter_main.c (the porter) share. */
#ifndef HYDNSD_RESOLVERS_PORTER_INTERNAL_H
#define HYDNSD_RESOLVERS_PORTER_INTERNAL_H

/* A porter's descriptors, after the standard ones. */
#define HYDNSD_PORTER_CONNECTION 3     /* the plugin's */
#define HYDNSD_PORTER_CHANNEL    4     /* to hydnsd */
#define HYDNSD_PORTER_FDS        5

#endif

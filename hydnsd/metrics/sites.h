/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What hydns-metrics serves: figures for Prometheus, and the page. */
#ifndef HYDNSD_METRICS_SITES_H
#define HYDNSD_METRICS_SITES_H

#include "hydnsd/metrics/http.h"

const struct metrics_site *metrics_site_figures(void);
const struct metrics_site *metrics_site_page(void);

#endif

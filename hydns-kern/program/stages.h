/* SPDX-License-Identifier: GPL-2.0-only */
/* Programs that hydns_xdp tail-calls, by their index in hydns_stages. */
#ifndef HYDNS_KERN_PROGRAM_STAGES_H
#define HYDNS_KERN_PROGRAM_STAGES_H

enum hydns_stage {
#define HYDNS_STAGE(place, program, constant, text) HYDNS_STAGE_##place,
#include "hydns-kern/program/stages.def"
#undef HYDNS_STAGE
	HYDNS_STAGES
};

#endif

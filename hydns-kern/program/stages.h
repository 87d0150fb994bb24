/* SPDX-License-Identifier: GPL-2.0-only */
/* Programs that hydns_xdp tail-calls, by their index in hydns_stages. */
#ifndef HYDNS_KERN_PROGRAM_STAGES_H
#define HYDNS_KERN_PROGRAM_STAGES_H

enum hydns_stage {
	HYDNS_STAGE_MISS,        /* no rule answers the query */
	HYDNS_STAGE_REPLAY,      /* what is not IP may carry a parked frame */
	HYDNS_STAGE_ENTRY,       /* hydns_xdp, for that frame */
	HYDNS_STAGE_FORWARD,     /* the query's name may be in a forwarded zone */
	HYDNS_STAGE_FORWARDED,   /* a packet to a port that upstream servers answer to */
	HYDNS_STAGE_LOGGED,      /* the query's resolver logs answers */
	HYDNS_STAGE_REFUSED,       /* the query's answer is not given: the resolver logs or limits its responses */
	HYDNS_STAGE_LEFT,        /* the query was analysed, and not answered */
#define HYDNS_ANALYSER(name, by, conditions, text) HYDNS_STAGE_ANALYSER_##name,
#include "hydns/analysers.def"
#undef HYDNS_ANALYSER
	HYDNS_STAGES
};

#endif

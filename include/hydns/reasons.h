/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Outcomes of a packet, numbered by their place in reasons.def. */
#ifndef HYDNS_REASONS_H
#define HYDNS_REASONS_H

enum hydns_reason {
#define HYDNS_REASON(name, action, of, text) HYDNS_R_##name,
#include "hydns/reasons.def"
#undef HYDNS_REASON
	HYDNS_REASONS
};

/* What the packet was. */
enum hydns_reason_of {
	HYDNS_OF_UNREAD,         /* nobody has looked */
	HYDNS_OF_OTHER,          /* no query to a resolver */
	HYDNS_OF_QUERY,
};

#ifndef __BPF__
/* "MISS" */
static inline const char *hydns_reason_name(enum hydns_reason r)
{
	static const char *const names[] = {
#define HYDNS_REASON(name, action, of, text) #name,
#include "hydns/reasons.def"
#undef HYDNS_REASON
	};

	return names[r];
}

/* "passed: no rule for this question" */
static inline const char *hydns_reason_text(enum hydns_reason r)
{
	static const char *const texts[] = {
#define HYDNS_REASON(name, action, of, text) text,
#include "hydns/reasons.def"
#undef HYDNS_REASON
	};

	return texts[r];
}

static inline enum hydns_reason_of hydns_reason_of(enum hydns_reason r)
{
	static const unsigned char of_what[] = {
#define HYDNS_REASON(name, action, of, text) HYDNS_OF_##of,
#include "hydns/reasons.def"
#undef HYDNS_REASON
	};

	return (enum hydns_reason_of)of_what[r];
}

/* The packet goes on to the network stack. */
static inline int hydns_reason_passes(enum hydns_reason r)
{
	enum { HYDNS_ACTION_TX, HYDNS_ACTION_DROP, HYDNS_ACTION_PASS };
	static const unsigned char actions[] = {
#define HYDNS_REASON(name, action, of, text) HYDNS_ACTION_##action,
#include "hydns/reasons.def"
#undef HYDNS_REASON
	};

	return actions[r] == HYDNS_ACTION_PASS;
}
#endif

#endif

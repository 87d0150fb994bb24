/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* dnsperf's input: one line `name type' for each query; # and ; begin comments. It has no times: the options set the rate. */
#include "hydns-sim/read_internal.h"

#include <errno.h>
#include <ldns/ldns.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hydns-sim/dns.h"

/* Returns 0 for a question, 1 for an empty line or a comment, negative for anything else. */
static int parse(char *line, struct dns_message *m)
{
	char *save, *name = strtok_r(line, " \t\r\n", &save), *type = strtok_r(NULL, " \t\r\n", &save);
	ldns_rdf *wire;
	ldns_rr_type number;

	if (!name || name[0] == '#' || name[0] == ';')
		return 1;
	if (!type)
		return -1;
	number = ldns_get_rr_type_by_name(type);
	wire = ldns_dname_new_frm_str(name);
	if (!number || !wire || ldns_rdf_size(wire) + 3 > sizeof(m->question)) {
		ldns_rdf_deep_free(wire);
		return -1;
	}
	ldns_dname2canonical(wire);
	m->question_len = (uint32_t)ldns_rdf_size(wire);
	memcpy(m->question, ldns_rdf_data(wire), m->question_len);
	ldns_rdf_deep_free(wire);
	m->question[m->question_len++] = (uint8_t)(number >> 8);
	m->question[m->question_len++] = (uint8_t)number;
	m->question[m->question_len++] = 0;
	return 0;
}

static int read_lines(struct reader *r, FILE *in)
{
	struct dns_message m;
	char *line = NULL;
	size_t room = 0;
	int rc = 0;

	while (!rc && getline(&line, &room, in) > 0) {
		r->counts->frames++;
		rc = parse(line, &m);
		if (rc < 0)
			rc = read_fail(r, "line %ju is not `name type': correct it, or say --format",
				       (uintmax_t)r->counts->frames);
		else if (rc > 0)
			rc = 0;
		else
			rc = read_query(r, m.question, m.question_len,
					(uint64_t)((double)r->counts->queries * 1e6 / r->options->rate));
	}
	if (!rc && ferror(in))
		rc = read_fail(r, "cannot read it: %s", strerror(errno));
	free(line);
	return rc;
}

int read_dnsperf(struct reader *r)
{
	FILE *in = fopen(r->path, "re");
	int rc;

	if (!in)
		return read_fail(r, "cannot open it: %s", strerror(errno));
	rc = read_lines(r, in);
	fclose(in);
	return rc;
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/control/composed.h"

#include "hydnsd/composition/exchange.h"
#include "hydnsd/composition/wanted.h"

static json_t *parts(struct hydnsd *d)
{
	const bool in[] = {
#define HYDNS_PART(name, constant, text) d->with.name,
#include "hydns-kern/loader/composition.def"
#undef HYDNS_PART
	};
	struct hydnsd_wanted w;
	json_t *list = json_array();

	hydnsd_wanted(d, &w);
	for (enum hydnsd_part p = 0; p < HYDNSD_PARTS; p++)
		json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:b, s:s}", "part", hydnsd_part_name(p), "text",
			hydnsd_part_text(p), "in", (int)in[p], "wanted", (int)w.part[p], "why", w.why[p]));
	return list;
}

static void add_program(const struct hydns_program_state *p, void *list)
{
	json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:b, s:I, s:I, s:I, s:I}", "program", p->name, "text", p->text,
		"in", (int)p->in, "stage", (int)p->stage, "id", (json_int_t)p->id, "instructions", (json_int_t)p->instructions,
		"verified", (json_int_t)p->verified, "octets", (json_int_t)p->octets));
}

json_t *hydnsd_composed(struct hydnsd *d)
{
	json_t *programs = json_array();

	hydns_kern_programs_each(d->kern, add_program, programs);
	return json_pack("{s:b, s:I, s:s, s:o, s:o}", "settled", (int)hydnsd_composition_settled(d), "exchanges",
		(json_int_t)hydnsd_composition_exchanges(d), "fault", hydnsd_composition_fault(d), "parts", parts(d),
		"programs", programs);
}

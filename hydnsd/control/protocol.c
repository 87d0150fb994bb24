/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/control/protocol.h"

#include <string.h>

/* of an argument; alternatives are ored */
enum { TEXT = 1, INTEGER = 2, TRUTH = 4 };

/* An argument of a command that commands.def does not have fails to compile. */
enum command {
#define CTL_COMMAND(name, ...) COMMAND_##name,
#include "hydnsd/control/commands.def"
#undef CTL_COMMAND
};

static const char *const commands[] = {
#define CTL_COMMAND(name, ...) [COMMAND_##name] = #name,
#include "hydnsd/control/commands.def"
#undef CTL_COMMAND
};

struct argument {
	enum command command;
	const char *name;
	unsigned types;
};

static const struct argument arguments[] = {
#define PROTOCOL_ARGUMENT(command, name, types, meaning) { COMMAND_##command, #name, types },
#define PROTOCOL_FIELD(...)
#define PROTOCOL_INCLUDE(...)
#include "hydnsd/control/protocol.def"
#undef PROTOCOL_ARGUMENT
#undef PROTOCOL_FIELD
#undef PROTOCOL_INCLUDE
};

static const struct argument *find(const char *command, const char *name)
{
	for (size_t i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++)
		if (!strcmp(commands[arguments[i].command], command) && !strcmp(arguments[i].name, name))
			return &arguments[i];
	return NULL;
}

static unsigned type_of(const json_t *v)
{
	return json_is_string(v) ? TEXT : json_is_integer(v) ? INTEGER : json_is_boolean(v) ? TRUTH : 0;
}

static json_t *wrong_type(const char *command, const struct argument *a)
{
	static const char *const alternatives[] = {
		[TEXT] = "a string", [INTEGER] = "an integer", [TRUTH] = "true or false",
		[TEXT | INTEGER] = "a string or an integer", [TRUTH | INTEGER] = "true, false or an integer",
		[TRUTH | TEXT] = "true, false or a string",
	};

	return json_sprintf("%s of %s is not %s: correct it", a->name, command, alternatives[a->types]);
}

json_t *hydnsd_protocol_fault(const char *command, const json_t *request)
{
	const char *name;
	const json_t *v;

	json_object_foreach((json_t *)request, name, v) {
		const struct argument *a = find(command, name);

		if (!strcmp(name, "cmd"))
			continue;
		if (!a)
			return json_sprintf("%s has no argument %s: see doc/control-protocol.md", command, name);
		if (!(a->types & type_of(v)))
			return wrong_type(command, a);
	}
	return NULL;
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The output of all commands: figures as JSON or as a picture, or an error. */
#include "hydns-sim/commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int sim_complain(const char *text)
{
	fprintf(stderr, "hydns-sim: %s\n", text);
	return EXIT_FAILURE;
}

/* The figures as a picture, by hydns-sim-plot beside this program or on the path. */
static int draw(const char *json, const char *picture)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return sim_complain("cannot start hydns-sim-plot: no process");
	if (pid == 0) {
		execlp("hydns-sim-plot", "hydns-sim-plot", json, picture, (char *)NULL);
		fprintf(stderr, "hydns-sim: cannot run hydns-sim-plot: %s: install it, or draw from --json\n",
			strerror(errno));
		_exit(127);
	}
	if (waitpid(pid, &status, 0) < 0 || status != 0)
		return sim_complain("no picture: hydns-sim-plot failed");
	return 0;
}

static int draw_through_file(json_t *j, const char *picture)
{
	char path[] = "/tmp/hydns-sim.XXXXXX";
	int fd = mkstemp(path), rc;

	if (fd < 0)
		return sim_complain("cannot make a file in /tmp for the picture's figures: make room there");
	rc = json_dumpfd(j, fd, 0) ? sim_complain("cannot write the picture's figures: make room in /tmp") :
	     draw(path, picture);
	close(fd);
	unlink(path);
	return rc;
}

int sim_deliver(const struct sim_options *o, json_t *j)
{
	char text[SIM_SOURCE_MAX];
	int rc = 0;

	if (o->json && (strcmp(o->json, "-") == 0 ? json_dumpf(j, stdout, JSON_INDENT(1)) :
			json_dump_file(j, o->json, JSON_INDENT(1)))) {
		snprintf(text, sizeof(text), "cannot write %.100s: see whether it can be written to", o->json);
		rc = sim_complain(text);
	}
	if (!rc && o->plot)
		rc = draw_through_file(j, o->plot);
	return rc;
}

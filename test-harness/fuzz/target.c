/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "test-harness/fuzz/target.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Turns until the octets have ended. NULL, or what is wrong. */
static const char *turns_of(const uint8_t *octets, size_t len)
{
	const char *wrong = NULL;

	fuzz_from_octets(octets, len);
	do
		wrong = fuzz_target.turn();
	while (!wrong && fuzz_more());
	return wrong;
}

#ifdef HYDNS_LIBFUZZER
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *octets, size_t len);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	int status = fuzz_target.begin ? fuzz_target.begin(*argc, *argv) : 0;

	if (status)
		exit(status);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *octets, size_t len)
{
	const char *wrong = turns_of(octets, len);

	if (wrong) {
		fprintf(stderr, "%s: %s\n", fuzz_target.one, wrong);
		abort();
	}
	return 0;
}
#else
#define FILE_MOST 65536

/* False: says why, or what is wrong. */
static bool replay(const char *path)
{
	static uint8_t octets[FILE_MOST];
	FILE *f = fopen(path, "rb");
	size_t len = f ? fread(octets, 1, sizeof(octets), f) : 0;
	uint8_t *exact;
	const char *wrong;

	if (!f) {
		perror(path);
		return false;
	}
	fclose(f);
	exact = malloc(len ? len : 1);         /* so that a sanitizer sees each octet read beyond it */
	memcpy(exact, octets, len);
	wrong = turns_of(exact, len);
	free(exact);
	if (wrong)
		fprintf(stderr, "%s: %s\nagain with: %s\n", fuzz_target.one, wrong, path);
	return !wrong;
}

static int is_input(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

/* Always in the same order, for an input may find what former ones have left. -1: one is wrong, or there are none. */
static int replay_corpus(const char *corpus)
{
	char folder[4096], path[8192];
	struct dirent **entry;
	int files, good = 0;

	snprintf(folder, sizeof(folder), "%s/%s", corpus, fuzz_target.name);
	files = scandir(folder, &entry, is_input, alphasort);
	for (int i = 0; i < files; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, entry[i]->d_name);
		if (good == i)
			good += replay(path);
		free(entry[i]);
	}
	if (files > 0)
		free(entry);
	else
		fprintf(stderr, "no corpus in %s\n", folder);
	return files > 0 && good == files ? files : -1;
}

static bool run_turns(const struct fuzz_run *r)
{
	fuzz_from_seed(r->seed);
	for (uint64_t i = 0; i < r->count; i++) {
		const char *wrong = fuzz_target.turn();

		if (wrong) {
			fuzz_wrong(r, fuzz_target.one, i, wrong);
			return false;
		}
	}
	return true;
}

static int run_files(int files, char **file)
{
	for (int i = 0; i < files; i++)
		if (!replay(file[i]))
			return 1;
	printf("%d files\n", files);
	return 0;
}

int main(int argc, char **argv)
{
	const char *corpus = getenv("FUZZ_CORPUS");
	struct fuzz_run run;
	int status = fuzz_target.begin ? fuzz_target.begin(argc, argv) : 0, files = 0;

	if (status)
		return status;
	if (argc > 1 && strncmp(argv[1], "--", 2))
		return run_files(argc - 1, argv + 1);
	run = fuzz_begin(argc, argv, fuzz_target.count);
	if (corpus)
		files = replay_corpus(corpus);
	if (files < 0 || !run_turns(&run))
		return 1;
	printf("%d files of the corpus, then %" PRIu64 " turns (seed %" PRIu64 "): ", files, run.count, run.seed);
	return fuzz_target.end();
}
#endif

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Lines for a terminal. Their texts may come from anybody: what would act on a terminal is written out when they are printed. */
#ifndef HYDNSD_CTL_SCREEN_H
#define HYDNSD_CTL_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum screen_style { SCREEN_PLAIN, SCREEN_STRONG, SCREEN_QUIET, SCREEN_GOOD, SCREEN_WARN, SCREEN_FAIL };

struct screen;

/* Exits when there is no memory, as ctl_table_new(). */
struct screen *screen_new(void);
void screen_free(struct screen *s);
/* Adds a line. */
void screen_add(struct screen *s, enum screen_style style, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Adds each line of a text. */
void screen_add_lines(struct screen *s, enum screen_style style, const char *text);
/* Prints what fits: so many lines of so many columns each; 0: all. colours: by SGR sequences, unless there shall be none. */
void screen_print(const struct screen *s, FILE *out, size_t rows, size_t columns, bool colours);

#endif

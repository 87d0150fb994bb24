/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* hydnsd's own start and end, as a function of a program that has a main(). */
int daemon_main(int argc, char **argv);
#define main daemon_main
#include "hydnsd/daemon/main.c"

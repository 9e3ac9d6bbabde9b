/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layers - the files of a sandbox's own disk layers, in its directory.
 *
 * How      DIR/root.N.qcow2 are read-only layers, in the order of N, which may skip numbers: a
 *          merge removes one. DIR/root.qcow2 is the top, which the VM writes. The same for docker.
 * Trust    The user's own directory. Only names are read.
 * Limits   LAYERS_MAX layers of a disk are reported, LAYERS_MAX_NUMBER is the highest number.
 * See      src/keeper/machine/disks.h, layers_test.c
 */
#pragma once

#include "template.h"

#define LAYERS_MAX 48
#define LAYERS_MAX_NUMBER 9999

/* The numbers of the read-only layers of a disk, upwards. */
struct layers {
	unsigned number[LAYERS_MAX];
	size_t n;
};

/* n 0: the top. */
char *layers_path(const char *dir, enum template_disk disk, unsigned n);
/* -EMLINK if there are more than LAYERS_MAX. No directory: none. */
int layers_find(const char *dir, enum template_disk disk, struct layers *ret) MUST_CHECK;
/* A new file with the same content; it shares or skips blocks where that is possible. */
int layers_copy(const char *from, const char *to, struct err *err) MUST_CHECK;
/* The highest number; 0: none. */
unsigned layers_last(const struct layers *l);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * imageenv - the variables that a template's image sets for every program.
 *
 * How      IMAGEENV_FILE has one NAME=value per line; template-oci and a Dockerfile's ENV write it.
 *          It is on the root disk, so a template saved from a sandbox has it too. It overrides the
 *          defaults of a login, and settings of the host override it.
 * Trust    A file of the guest's own disk: a line that is not an assignment is skipped.
 * Limits   FILE_MAX_BYTES of file.h; IMAGEENV_MAX lines.
 * See      imageenv_test.c, image/template-oci
 */
#pragma once

#include "src/guest/base/base.h"

#define IMAGEENV_FILE "/etc/sbx/environment"
#define IMAGEENV_MAX 1024

/* PATH keeps `first` at the front, unless that is NULL. */
void imageenv_put(struct env *e, const char *text, const char *first);
/* The same from the file, if it exists. */
void imageenv_load(struct env *e, const char *first);

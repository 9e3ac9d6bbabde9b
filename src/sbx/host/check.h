/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check - the checks of `sbx diagnose`, one function and one row each.
 *
 * How      Each function fills a struct check: pass, warn, fail or skip, the result and, except for
 *          pass, the command to run. No check takes longer than CHECK_WAIT_MS.
 * Trust    Reads the host as the user; changes nothing.
 * See      check_host.c, check_own.c, check_memory.c, check_policy.c, cmd_diagnose.c
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "lib/base/attr.h"

#define CHECK_WAIT_MS 5000

enum check_status { CHECK_PASS, CHECK_WARN, CHECK_FAIL, CHECK_SKIP, CHECK_N_STATUS };

struct check {
	enum check_status status;
	char message[160];
	char detail[512];
	char hint[256];
};

struct check_row {
	const char *group, *name;
	void (*fn)(struct check *c);
};

/* Each ends with a row without a name. */
extern const struct check_row check_host_rows[], check_own_rows[], check_policy_rows[];

void check_set(struct check *c, enum check_status status, const char *fmt, ...) PRINTF_LIKE(3, 4);
void check_detail(struct check *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
void check_hint(struct check *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The program in PATH (also the sbin directories); false if it does not exist. */
bool check_find_program(const char *name, char *buf, size_t size);
/* Free bytes on the file system of the nearest existing directory, which `dir` becomes. */
int check_free_bytes(char *dir, uint64_t *ret);
/* Where the memory of a sandbox is. */
void check_memory(struct check *c);
/* Snapshots of another format. */
void check_snapshots(struct check *c);

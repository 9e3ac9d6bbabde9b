/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_chan - the messages between the sealed vault and sbx-vault-run, which executes programs for
 * it.
 *
 * How      SOCK_SEQPACKET, struct ipc_msg, the vault's fd 4. RUN (vault -> runner, with one fd) is
 *          answered by ENDED under its id when the program is over or could not be started.
 *
 *          kind     program is                        fd becomes          stdin else
 *          KEYRING  sbx-vault-keyring                 stdin and stdout    -
 *          ENCRYPT  systemd-creds encrypt             stdin and stdout    -
 *          DECRYPT  systemd-creds decrypt             stdin and stdout    -
 *          REF      registered for run.serial         stdout              docker: server URL
 *
 *          The descriptor is one end of a socket pair or pipe whose other end the vault keeps, so
 *          no value ever passes the runner.
 * Trust    The runner lets the vault choose only among the programs that the user registered
 *          (run_ref.h), not a program or an argument; the vault believes no output.
 * Limits   RUN_MAX_RUNS at once, RUN_MAX_MS each. Any violation ends the receiver.
 * See      proto/PROTOCOL.ipc, run_chan_test.c, run_chan_fuzz.c
 */
#pragma once

#include "chan.h"

#define RUN_MAX_RUNS 32
#define RUN_MAX_MS 120000

enum run_msg { RUN_RUN = 1, RUN_ENDED, RUN_N_MSGS };

/* The table of the channel. It has no phases. */
enum run_from { RUN_FROM_VAULT, RUN_FROM_RUNNER };
extern const struct chan run_chan;

enum run_kind { RUN_KEYRING, RUN_ENCRYPT, RUN_DECRYPT, RUN_REF, RUN_N_KINDS };

struct run {
	enum run_kind kind;
	uint32_t timeout_ms; /* then its process group is killed */
	uint64_t serial;     /* REF: of the credential; others: 0 */
};

/* How it ended: an exit status (0 is good), else -ETIMEDOUT, -EINTR (a signal), or why it could
 * not be started; -EPERM: nothing is registered for this serial. */
int run_send_run(int sock, uint32_t id, const struct run *run, int fd) MUST_CHECK;
int run_send_ended(int sock, uint32_t id, int32_t how) MUST_CHECK;

/* Decoders: 0, or -EBADMSG. RUN leaves the fd in the message. */
int run_get_run(const struct ipc_msg *msg, struct run *ret) MUST_CHECK;
int run_get_ended(const struct ipc_msg *msg, int32_t *ret_how) MUST_CHECK;

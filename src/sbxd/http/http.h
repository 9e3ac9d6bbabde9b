/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http - the socket of sbxd, its connections, and the form of requests.
 *
 * How      listen.h opens the socket, conn.h reads requests and sends replies, api_route.h finds
 *          the call of a request, api_body.h decodes its body. Requests are passed up through
 *          struct conn_ops.
 * Trust    Clients of the same uid. Requests are untrusted: strict parsers with limits.
 */
#pragma once

#include "api_body.h"
#include "api_route.h"
#include "conn.h"
#include "listen.h"

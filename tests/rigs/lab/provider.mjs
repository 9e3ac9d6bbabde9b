// SPDX-License-Identifier: Apache-2.0
// provider - one HTTPS server (HTTP/1.1 and HTTP/2) with the part of three model APIs that an agent
//            needs for one turn.
//
// usage:  node provider.mjs CERT KEY ANSWER [PORT [WORK]]
//
// The first line of output is {"port": N}; then one line per request.
//
// The APIs are Anthropic's Messages, OpenAI's Responses and Google's generateContent. The response
// to each question is ANSWER, as a stream if the client requests a stream; OpenAI's also over a
// WebSocket. The server records every other request and responds with 404, so that no client waits.
// The server runs in tests only, on loopback. Its output contains the received credentials, because
// tests check them.
//
// WORK is JSON, {"file": PATH, "old": TEXT, "new": TEXT, "command": TEXT}. An agent that offers its
// tools is told to use them first, to edit the file and to run the command (tools.mjs). ANSWER
// follows the results. {"steps": [...]} is a longer list of edits and commands.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createSecureServer } from "node:http2";
import { brotliDecompressSync, gunzipSync, inflateSync } from "node:zlib";
import { anthropicCall, googleCall, openaiCall } from "./tools.mjs";

const [, , cert, key, answer, port, text] = process.argv;
const work = text ? JSON.parse(text) : undefined;
const MAX_BODY = 16 << 20;
const say = (what) => process.stdout.write(JSON.stringify(what) + "\n");

function json(res, status, value) {
  res.writeHead(status, { "content-type": "application/json" });
  res.end(JSON.stringify(value));
}

// events: [name or "", value]
function stream(res, events) {
  res.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  for (const [name, value] of events)
    res.write((name ? `event: ${name}\n` : "") + `data: ${JSON.stringify(value)}\n\n`);
  res.end();
}

function anthropic(res, asked) {
  const usage = { input_tokens: 7, output_tokens: 3 };
  const call = anthropicCall(work, asked);
  const content = call ?? { type: "text", text: answer };
  const why = { stop_reason: call ? "tool_use" : "end_turn", stop_sequence: null };
  const message = { id: "msg_lab", type: "message", role: "assistant", model: asked.model ?? "lab",
    content: [content], ...why, usage };
  if (!asked.stream) return json(res, 200, message);
  const delta = call ? { type: "input_json_delta", partial_json: JSON.stringify(call.input) }
    : { type: "text_delta", text: answer };
  const events = [
    ["message_start", { message: { ...message, content: [], stop_reason: null } }],
    ["content_block_start",
      { index: 0, content_block: call ? { ...call, input: {} } : { type: "text", text: "" } }],
    ["content_block_delta", { index: 0, delta }],
    ["content_block_stop", { index: 0 }],
    ["message_delta", { delta: why, usage }],
    ["message_stop", {}],
  ];
  return stream(res, events.map(([type, value]) => [type, { type, ...value }]));
}

// [whole answer, its events]
function response(asked) {
  const usage = { input_tokens: 7, output_tokens: 3, total_tokens: 10,
    input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } };
  const call = openaiCall(work, asked);
  const content = [{ type: "output_text", text: answer, annotations: [] }];
  const item = call
    ?? { type: "message", id: "item_lab", role: "assistant", status: "completed", content };
  const whole = { id: "resp_lab", object: "response", created_at: 1, status: "completed",
    model: asked.model ?? "lab", output: [item], usage };
  const events = [
    ["response.created",
      { response: { ...whole, status: "in_progress", output: [], usage: null } }],
    ["response.output_item.added",
      { output_index: 0, item: call ?? { ...item, status: "in_progress", content: [] } }],
    ...(call ? [] : [["response.output_text.delta",
      { output_index: 0, content_index: 0, item_id: item.id, delta: answer }]]),
    ["response.output_item.done", { output_index: 0, item }],
    ["response.completed", { response: whole }],
  ];
  return [whole, events.map(([type, value], n) => [type, { type, sequence_number: n, ...value }])];
}

function openai(res, asked) {
  const [whole, events] = response(asked);
  return asked.stream ? stream(res, events) : json(res, 200, whole);
}

function google(res, how, asked) {
  // A request for JSON by a schema gets the smallest value that the schema allows.
  const schema = asked.generationConfig?.responseJsonSchema
    ?? asked.generationConfig?.responseSchema;
  const call = schema ? undefined : googleCall(work, asked);
  const part = call ?? { text: schema ? JSON.stringify(smallest(schema)) : answer };
  const value = {
    candidates: [{ index: 0, finishReason: "STOP", content: { role: "model", parts: [part] } }],
    usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 3, totalTokenCount: 10 },
    modelVersion: "lab",
  };
  return how.startsWith("stream") ? stream(res, [["", value]]) : json(res, 200, value);
}

function smallest(schema, depth = 0) {
  const type = String(schema.type ?? "object").toLowerCase();
  if (schema.enum) return schema.enum[0];
  if (type === "object" && depth < 8) {
    return Object.fromEntries((schema.required ?? [])
      .map((name) => [name, smallest(schema.properties?.[name] ?? {}, depth + 1)]));
  }
  return { array: [], string: "lab", integer: schema.minimum ?? 1, number: schema.minimum ?? 1,
    boolean: false }[type] ?? null;
}

function plain(coding, bytes) {
  if (coding === "gzip") return gunzipSync(bytes);
  if (coding === "deflate") return inflateSync(bytes);
  if (coding === "br") return brotliDecompressSync(bytes);
  if (coding === "zstd")
    return spawnSync("zstd", ["-d", "-q", "-c"], { input: bytes, maxBuffer: MAX_BODY }).stdout;
  return bytes;
}

function parsed(req, bytes) {
  try {
    return JSON.parse(plain(req.headers["content-encoding"], bytes).toString());
  } catch {
    return {};
  }
}

function reply(req, res, path, asked) {
  const how = path.match(
    /^\/v1(?:beta|alpha)\/models\/[^/]+:(generateContent|streamGenerateContent|countTokens)$/)?.[1];
  if (req.method === "POST" && path === "/v1/messages/count_tokens")
    return json(res, 200, { input_tokens: 7 });
  if (req.method === "POST" && path === "/v1/messages") return anthropic(res, asked);
  if (req.method === "POST" && path === "/v1/responses") return openai(res, asked);
  if (req.method === "POST" && how === "countTokens") return json(res, 200, { totalTokens: 7 });
  if (req.method === "POST" && how) return google(res, how, asked);
  const message = "the laboratory does not have this";
  const error = { type: "not_found_error", message, code: 404, status: "NOT_FOUND" };
  return json(res, 404, { error });
}

function record(req, status, body) {
  const headers = [];
  for (let i = 0; i < req.rawHeaders.length; i += 2)
    headers.push([req.rawHeaders[i].toLowerCase(), req.rawHeaders[i + 1]]);
  const host = req.headers.host ?? req.headers[":authority"];
  say({ version: req.httpVersion, method: req.method, path: req.url, host, headers, status, body });
}

function onRequest(req, res) {
  const pieces = [];
  let length = 0;
  res.on("error", () => {});
  req.on("error", () => {});
  req.on("data", (piece) => {
    length += piece.length;
    if (length <= MAX_BODY) pieces.push(piece);
  });
  req.on("end", () => {
    const bytes = Buffer.concat(pieces);
    reply(req, res, new URL(req.url, "https://here.test").pathname, parsed(req, bytes));
    record(req, res.statusCode, plain(req.headers["content-encoding"], bytes).toString("latin1"));
  });
}

// One frame of a client (RFC 6455, always masked): undefined while it is incomplete.
function frame(had) {
  if (had.length < 2) return undefined;
  const small = had[1] & 127;
  const at = small === 126 ? 4 : small === 127 ? 10 : 2;
  if (had.length < at + 4) return undefined;
  const n = small === 126 ? had.readUInt16BE(2)
    : small === 127 ? Number(had.readBigUInt64BE(2)) : small;
  if (n > MAX_BODY) throw new Error("a frame that is too long");
  if (had.length < at + 4 + n) return undefined;
  const mask = had.subarray(at, at + 4);
  return { last: (had[0] & 128) !== 0, code: had[0] & 15,
    bytes: had.subarray(at + 4, at + 4 + n).map((b, i) => b ^ mask[i % 4]), size: at + 4 + n };
}

function send(socket, code, bytes) {
  const n = bytes.length;
  const head = n < 126 ? Buffer.from([128 | code, n])
    : Buffer.from([128 | code, 126, n >> 8, n & 255]);
  socket.write(Buffer.concat([head, bytes]));
}

// OpenAI's Responses over a WebSocket: each message is a question, each event is a message.
function onMessage(req, socket, text) {
  record(req, 101, text.toString("latin1"));
  const asked = JSON.parse(text.toString());
  for (const [, value] of asked.type === "response.create" ? response(asked)[1] : [])
    send(socket, 1, Buffer.from(JSON.stringify(value)));
}

function onUpgrade(req, socket) {
  socket.on("error", () => {});
  if (req.url.split("?")[0] !== "/v1/responses") {
    record(req, 404, "");
    return socket.end("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  }
  const accept = createHash("sha1")
    .update(req.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")
    .digest("base64");
  record(req, 101, "");
  socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    + `Sec-WebSocket-Accept: ${accept}\r\n\r\n`);
  let had = Buffer.alloc(0);
  let message = Buffer.alloc(0);
  return socket.on("data", (piece) => {
    had = Buffer.concat([had, piece]);
    for (let one = frame(had); one; one = frame(had)) {
      had = had.subarray(one.size);
      if (one.code === 8) return socket.end(Buffer.from([0x88, 0]));
      if (one.code === 9) send(socket, 10, one.bytes);
      if (one.code > 2) continue;
      message = Buffer.concat([message, one.bytes]);
      if (!one.last) continue;
      onMessage(req, socket, message);
      message = Buffer.alloc(0);
    }
    return undefined;
  });
}

const server = createSecureServer({ cert: readFileSync(cert), key: readFileSync(key),
  allowHTTP1: true });
server.on("request", onRequest);
server.on("upgrade", onUpgrade);
server.on("sessionError", () => {});
server.on("tlsClientError", (error) => say({ tls: error.code ?? String(error) }));
server.listen(Number(port ?? 0), "127.0.0.1", () => say({ port: server.address().port }));

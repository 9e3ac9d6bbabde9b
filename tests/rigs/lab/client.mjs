// SPDX-License-Identifier: Apache-2.0
// client - sends the requests of a script over one HTTP/2 connection through a proxy.
//
// usage:  node client.mjs PROXY-PORT CA-FILE HOST < SCRIPT      SCRIPT: JSON, a list of
//
//   {"headers": {...}, "body": ["piece", ...], "talk": true}
//
// The requests are sent one after the other. Headers may contain pseudo headers. With `talk` the
// client sends the next piece after the response to the previous piece has arrived. Prints one line
// of JSON per request: {"status", "headers", "trailers", "body" (base64), "error"}.
import { connect as connectH2 } from "node:http2";
import { request as requestH1 } from "node:http";
import { readFileSync } from "node:fs";
import { connect as connectTls } from "node:tls";

const [, , proxy, ca, host] = process.argv;
const script = JSON.parse(readFileSync(0, "utf8"));
const say = (what) => process.stdout.write(JSON.stringify(what) + "\n");

function tunnel() {
  return new Promise((done, failed) => {
    const ask = requestH1({ port: Number(proxy), method: "CONNECT", path: `${host}:443`,
      headers: { host: `${host}:443` } });
    ask.on("connect", (answer, socket) => {
      if (answer.statusCode !== 200) return failed(new Error(`CONNECT: ${answer.statusCode}`));
      const tls = connectTls({ socket, servername: host, ca: readFileSync(ca),
        ALPNProtocols: ["h2"] }, () => done(tls));
      return tls.on("error", failed);
    });
    ask.on("error", failed).end();
  });
}

function exchange(client, { headers, body = [], talk = false }) {
  return new Promise((done) => {
    const got = { status: 0, headers: {}, trailers: {}, error: "" };
    const pieces = [];
    const left = [...body];
    const stream = client.request({ ":authority": host, ...headers },
      { endStream: body.length === 0 });
    stream.on("response", (h) => Object.assign(got, { status: h[":status"], headers: h }));
    stream.on("trailers", (h) => (got.trailers = h));
    stream.on("data", (piece) => {
      pieces.push(piece);
      if (talk) (left.length ? stream.write(left.shift()) : stream.end());
    });
    stream.on("error", (e) => (got.error = e.code ?? String(e)));
    stream.on("close", () => done({ ...got, body: Buffer.concat(pieces).toString("base64") }));
    if (talk) stream.write(left.shift());
    else if (left.length) {
      while (left.length) stream.write(left.shift());
      stream.end();
    }
  });
}

const socket = await tunnel();
const client = connectH2(`https://${host}`, { createConnection: () => socket });
client.on("error", () => {});
client.on("goaway", () => {});
for (const one of script) {
  try {
    say(await exchange(client, one));
  } catch (error) {
    say({ status: 0, headers: {}, trailers: {}, body: "", error: error.code ?? String(error) });
  }
}
client.destroy();

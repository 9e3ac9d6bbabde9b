// SPDX-License-Identifier: Apache-2.0
// grpc - both ends of a bidirectional stream of gRPC, by @grpc/grpc-js.
//
// usage:  node grpc.mjs MODULES serve CERT KEY
//         node grpc.mjs MODULES talk HOST:PORT CA N
//
// The server prints {"port": N}, then one line per call. The client reads the proxy and TOKEN from
// the environment.
//
// The client sends message i+1 after the response to message i has arrived, so that both directions
// stay open. The server responds to each message with its text reversed and sends its own trailer.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const [, , modules, what, first, second, count] = process.argv;
const grpc = createRequire(modules + "/")("@grpc/grpc-js");
const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");
const same = (bytes) => bytes;
const definition = {
  talk: { path: "/lab.Lab/Talk", requestStream: true, responseStream: true, requestSerialize: same,
    requestDeserialize: same, responseSerialize: same,
          responseDeserialize: same },
};
const reversed = (bytes) => Buffer.from(bytes).reverse();

function talk(call) {
  let n = 0;
  call.on("data", (message) => {
    n += 1;
    call.write(reversed(message));
  });
  call.on("end", () => {
    say({ path: call.getPath(), metadata: call.metadata.toHttp2Headers(), messages: n });
    const trailer = new grpc.Metadata();
    trailer.set("x-count", String(n));
    call.end(trailer);
  });
  call.on("error", () => {});
}

function serve() {
  const server = new grpc.Server();
  server.addService(definition, { talk });
  const pair = { cert_chain: readFileSync(first), private_key: readFileSync(second) };
  const credentials = grpc.ServerCredentials.createSsl(null, [pair]);
  server.bindAsync("127.0.0.1:0", credentials, (error, port) => {
    if (error) throw error;
    say({ port });
  });
}

function client() {
  const Client = grpc.makeGenericClientConstructor(definition, "Lab");
  const stub = new Client(first, grpc.credentials.createSsl(readFileSync(second)));
  const metadata = new grpc.Metadata();
  if (process.env.TOKEN) metadata.set("authorization", `Bearer ${process.env.TOKEN}`);
  const call = stub.talk(metadata, { deadline: Date.now() + 30000 });
  const answers = [];
  const next = () =>
    (answers.length < Number(count)
      ? call.write(Buffer.from(`message ${answers.length}`)) : call.end());
  call.on("data", (message) => {
    answers.push(reversed(message).toString());
    next();
  });
  call.on("error", () => {});
  call.on("status", (status) => {
    say({ answers, code: status.code, details: status.details,
      trailers: status.metadata.toHttp2Headers() });
    stub.close();
  });
  next();
}

if (what === "serve") serve();
else client();

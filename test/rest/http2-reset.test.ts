import { connect } from "node:net";
import { expect, test } from "vitest";
import { useTestApp } from "../support/app.ts";
import { createTestKey, operatorOf, useTestKey } from "../support/fixtures.ts";
import { END_HEADERS, END_STREAM, frame, PREFACE, SETTINGS } from "../support/http2-flood.ts";
import { bearer } from "../support/protocols.ts";
import { sendHttp1 } from "../support/raw.ts";
import { jsonOf } from "./answers.ts";

const app = useTestApp();
const key = useTestKey(app);

const [DATA, HEADERS, RST_STREAM] = [0, 1, 3];
const CANCEL = Buffer.from([0, 0, 0, 8]);

// Client libraries end the body before they reset the stream. This test must not, so it writes frames itself.
test.each([
  ["at once", ""],
  ["after half of its body", "{"],
  ["after a body without END_STREAM", "{}"],
])("an HTTP/2 call that the client resets %s is not executed", async (_name, body) => {
  const { id } = await createTestKey(operatorOf(app), { accountId: key.accountId });
  const revoke = { ":method": "POST", ":path": `/v1/keys/${id}:revoke`, "content-type": "application/json" };
  const me = { ":method": "GET", ":path": "/v1/me" };
  const socket = connect(Number(new URL(app.url).port), "127.0.0.1");
  let seen = Buffer.alloc(0);
  const answerOf = (stream: number) =>
    new Promise<void>((resolve, reject) => {
      const read = (chunk: Buffer) => {
        seen = Buffer.concat([seen, chunk]);
        if (!framesOf(seen).some((one) => one.type === HEADERS && one.stream === stream)) return;
        socket.off("data", read);
        resolve();
      };
      socket.on("data", read).on("error", reject);
    });
  socket.write(Buffer.concat([PREFACE, SETTINGS]));
  socket.write(frame(HEADERS, END_HEADERS, 1, headers(revoke)));
  if (body === "") socket.write(frame(RST_STREAM, 0, 1, CANCEL));
  else socket.write(frame(DATA, 0, 1, Buffer.from(body)));
  // When a later call has its response, the gate has processed the headers and the body of the first call.
  for (const stream of [3, 5]) {
    const answered = answerOf(stream);
    socket.write(frame(HEADERS, END_HEADERS | END_STREAM, stream, headers(me)));
    await answered;
    if (stream === 3 && body !== "") socket.write(frame(RST_STREAM, 0, 1, CANCEL));
  }
  socket.destroy();
  const found = await sendHttp1(app.url, { method: "GET", path: `/v1/keys/${id}`, headers: bearer(key.secret) });
  expect(jsonOf(found).api_key).toMatchObject({ id, state: "active" });
});

function headers(fields: Record<string, string>): Buffer {
  const all = { ":scheme": "http", ":authority": "vx", ...fields, ...bearer(key.secret) };
  // HPACK: literal fields without indexing, names and values not compressed.
  const text = (value: string) => {
    const bytes = Buffer.from(value);
    return Buffer.concat([Buffer.from([bytes.length]), bytes]);
  };
  const sorted = Object.entries(all).sort(([a], [b]) => Number(b.startsWith(":")) - Number(a.startsWith(":")));
  return Buffer.concat(sorted.flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]));
}

function framesOf(bytes: Buffer): { type: number; stream: number }[] {
  const frames = [];
  for (let at = 0; at + 9 <= bytes.length; at += 9 + bytes.readUIntBE(at, 3)) {
    frames.push({ type: bytes.readUInt8(at + 3), stream: bytes.readUInt32BE(at + 5) });
  }
  return frames;
}

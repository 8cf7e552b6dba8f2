import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import type { ServerHttp2Stream } from "node:http2";
import { connect } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { END_HEADERS, END_STREAM, frame, PREFACE, REQUEST, SETTINGS } from "../support/http2-flood.ts";
import { listen } from "./listen.ts";

const CREATED = "http2.server.stream.created";
const SESSIONS = 20;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

test("a session and its streams are released from memory when their connection closes", async () => {
  const { listener, port } = await listen(() => undefined);
  const seen: WeakRef<object>[] = [];
  const keep = (message: unknown) => {
    const { stream } = message as { readonly stream: ServerHttp2Stream };
    seen.push(new WeakRef(stream), new WeakRef(stream.session as object));
  };
  subscribe(CREATED, keep);
  for (let i = 0; i < SESSIONS; i++) {
    const socket = connect(port, "127.0.0.1").on("error", () => undefined);
    socket.write(Buffer.concat([PREFACE, SETTINGS, frame(1, END_HEADERS | END_STREAM, 1, REQUEST)]));
    await once(socket, "data");
    while (seen.length < (i + 1) * 2) await new Promise((resolve) => setImmediate(resolve));
    socket.resetAndDestroy();
  }
  unsubscribe(CREATED, keep);
  while (listener.connections > 0) await new Promise((resolve) => setImmediate(resolve));
  // The first of two collections releases what native code holds.
  for (let i = 0; i < 2; i++) {
    await new Promise((resolve) => setTimeout(resolve, 0));
    collect();
  }
  // V8 may still hold the latest session on its stack or in a cache.
  expect(seen.filter((object) => object.deref() !== undefined).length).toBeLessThanOrEqual(4);
  await listener.close(0);
});

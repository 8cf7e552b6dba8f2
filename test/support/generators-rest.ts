import { request as http1Request, type IncomingMessage } from "node:http";
import { connect } from "node:http2";
import type { Readable } from "node:stream";
import { create, fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import { GenerateRequestSchema, GenerateResponseSchema, StreamGenerateResponseSchema } from "../../gen/vx/v1/generate_pb.js";
import { type GenerateFields, type GenerateOptions, type Generator, Refused } from "./generators.ts";
import { onAbort } from "./on-abort.ts";
import { bearer } from "./protocols.ts";

/** REST without a generated client. Streams are server-sent events. */
export function openRest(url: string, version: "1.1" | "2"): Generator {
  const post = version === "2" ? postHttp2 : postHttp1;
  return {
    generate: async (request, options) => {
      const { status, headers, body } = await post(url, jsonOf(request, false), options);
      let text = "";
      for await (const chunk of body) text += chunk;
      if (status !== 200) throw refusedOf(text, headers);
      return fromJson(GenerateResponseSchema, JSON.parse(text) as JsonValue);
    },
    async *stream(request, options) {
      const { status, headers, body, hangUp } = await post(url, jsonOf(request, true), options);
      let text = "";
      let isWhole = false;
      try {
        for await (const chunk of body) {
          text += chunk;
          if (status !== 200) continue;
          const events = text.split("\n\n");
          text = events.pop() ?? "";
          for (const event of events) {
            if (event.startsWith(":")) continue;
            const data = event.replace(/^data: /, "");
            if (data === "[DONE]") isWhole = true;
            else if (data.startsWith('{"error"')) throw refusedOf(data, headers);
            else yield fromJson(StreamGenerateResponseSchema, JSON.parse(data) as JsonValue);
          }
        }
        if (status !== 200) throw refusedOf(text, headers);
        if (!isWhole) throw new Refused("", "unknown", "the stream ended without [DONE]");
      } finally {
        hangUp();
      }
    },
    close: () => undefined,
  };
}

type Posted = { readonly status: number; readonly headers: Record<string, string>; readonly body: Readable; hangUp(): void };

type Post = (url: string, body: string, options: GenerateOptions) => Promise<Posted>;

const postHttp1: Post = (url, body, options) =>
  new Promise((resolve, reject) => {
    const call = http1Request(
      new URL("/v1/generate", url),
      { method: "POST", headers: headersOf(options), agent: false },
      (response: IncomingMessage) => {
        response.setEncoding("utf8");
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers as Record<string, string>,
          body: response,
          hangUp: () => call.destroy(),
        });
      },
    );
    call.on("error", reject);
    onAbort(options.signal, () => call.destroy(new Refused("", "canceled", "left")));
    call.end(body);
  });

const postHttp2: Post = (url, body, options) =>
  new Promise((resolve, reject) => {
    const session = connect(url);
    const stream = session.request({ ":method": "POST", ":path": "/v1/generate", ...headersOf(options) });
    const hangUp = () => {
      stream.close(8);
      session.close();
    };
    session.on("error", reject);
    stream.on("error", reject);
    stream.on("response", ({ ":status": status, ...headers }) => {
      stream.setEncoding("utf8");
      resolve({ status: Number(status), headers: headers as Record<string, string>, body: stream, hangUp });
    });
    stream.on("end", () => session.close());
    options.signal?.addEventListener("abort", () => {
      hangUp();
      reject(new Refused("", "canceled", "left"));
    });
    stream.end(body);
  });

function headersOf({ secret, headers }: GenerateOptions): Record<string, string> {
  return { "content-type": "application/json", ...bearer(secret), ...headers };
}

function jsonOf(request: GenerateFields, stream: boolean): string {
  const message = create(GenerateRequestSchema, request);
  const json = toJson(GenerateRequestSchema, message, { useProtoFieldName: true }) as object;
  return JSON.stringify({ ...json, stream });
}

function refusedOf(text: string, headers: Record<string, string>): Refused {
  const { error } = JSON.parse(text) as {
    error: { code: string; status: string; message: string; details: { metadata?: Record<string, string> }[] };
  };
  const [info] = error.details;
  return new Refused(error.code, error.status.toLowerCase(), error.message, info?.metadata, headers);
}

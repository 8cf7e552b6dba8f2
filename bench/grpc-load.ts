import type { Load } from "./load.ts";
import { buildLoadProgram, type LoadResult, runLoadProgram } from "./load-program.ts";

export type GrpcTarget = {
  readonly url: string;
  readonly path: string;
  /** Encoded messages, sent in turn. */
  readonly messages: readonly Uint8Array[];
  /** Keys, used in turn. */
  readonly secrets?: readonly string[];
  readonly callers: number;
  readonly connections: number;
};

export const GET_ME = { path: "/vx.v1.MeService/GetMe", messages: [new Uint8Array(0)] };

/** An arm that calls a unary method in a closed loop. Fails on any status but OK. */
export async function grpcArm(target: GrpcTarget, seconds: number): Promise<() => Promise<Load>> {
  await buildLoadProgram();
  const spec = specOf(target);
  return async () => {
    const { perSecond, p50Ms, p99Ms } = await runLoadProgram({ ...spec, Seconds: seconds });
    return { perSecond, p50Ms, p99Ms };
  };
}

/** One call per caller, all at once. Fails on any status but OK. */
export function callOnce(target: GrpcTarget): Promise<LoadResult> {
  return runLoadProgram({ ...specOf(target), Seconds: MAX_SECONDS, CallsEach: 1 });
}

/** The load client fails a minute later. */
const MAX_SECONDS = 60;

function specOf({ url, path, messages, secrets = [], callers, connections }: GrpcTarget) {
  return {
    Protocol: "grpc" as const,
    Address: new URL(url).host,
    Callers: callers,
    Connections: connections,
    Path: path,
    Requests: messages.map((message) => withPrefix(message).toString("base64")),
    Authorizations: secrets.map((secret) => `Bearer ${secret}`),
  };
}

/** The length prefix of gRPC: not compressed. */
function withPrefix(message: Uint8Array): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

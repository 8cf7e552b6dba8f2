import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import * as grpc from "@grpc/grpc-js";
import { type ErrorInfo, ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { StatusSchema } from "../../gen/google/rpc/status_pb.js";
import {
  GenerateRequestSchema,
  type GenerateResponse,
  GenerateResponseSchema,
  type StreamGenerateResponse,
  StreamGenerateResponseSchema,
} from "../../gen/vx/v1/generate_pb.js";
import { type GenerateFields, type GenerateOptions, type Generator, Refused } from "./generators.ts";
import { onAbort } from "./on-abort.ts";
import { bearer } from "./protocols.ts";

/** Google's client, grpc-js. */
export function openGrpcJs(url: string): Generator {
  const client = new grpc.Client(new URL(url).host, grpc.credentials.createInsecure());
  const write = (request: GenerateFields) => Buffer.from(toBinary(GenerateRequestSchema, create(GenerateRequestSchema, request)));
  return {
    generate: (request, options) =>
      new Promise<GenerateResponse>((resolve, reject) => {
        const call = client.makeUnaryRequest(
          "/vx.v1.GenerateService/Generate",
          write,
          (bytes) => fromBinary(GenerateResponseSchema, bytes),
          request,
          metadataOf(options),
          deadlineOf(options),
          (error, message) => (message ? resolve(message) : reject(refusedOf(error))),
        );
        onAbort(options.signal, () => call.cancel());
      }),
    async *stream(request, options) {
      const call = client.makeServerStreamRequest(
        "/vx.v1.GenerateService/StreamGenerate",
        write,
        (bytes) => fromBinary(StreamGenerateResponseSchema, bytes),
        request,
        metadataOf(options),
        deadlineOf(options),
      );
      onAbort(options.signal, () => call.cancel());
      try {
        for await (const message of call) yield message as StreamGenerateResponse;
      } catch (error) {
        throw refusedOf(error as grpc.ServiceError);
      } finally {
        call.cancel();
      }
    },
    close: () => client.close(),
  };
}

function metadataOf({ secret, headers }: GenerateOptions): grpc.Metadata {
  const metadata = new grpc.Metadata();
  for (const [name, value] of Object.entries({ ...bearer(secret), ...headers })) metadata.add(name, value);
  return metadata;
}

function deadlineOf({ deadlineMs }: GenerateOptions): grpc.CallOptions {
  return deadlineMs === undefined ? {} : { deadline: Date.now() + deadlineMs };
}

function refusedOf(error: grpc.ServiceError | null): Refused {
  const [bytes] = error?.metadata?.get("grpc-status-details-bin") ?? [];
  const details = bytes === undefined ? [] : fromBinary(StatusSchema, bytes as Buffer).details;
  const info = details.map((any) => anyUnpack(any, ErrorInfoSchema)).find((found): found is ErrorInfo => found !== undefined);
  const code = (grpc.status[error?.code ?? grpc.status.UNKNOWN] ?? "").toLowerCase();
  return new Refused(
    info?.reason.toLowerCase() ?? "",
    code === "cancelled" ? "canceled" : code,
    error?.details ?? "",
    info?.metadata,
    (error?.metadata?.getMap() ?? {}) as Record<string, string>,
  );
}

import type { Message } from "@bufbuild/protobuf";
import { readBinary } from "../../codec/binary/read-message.ts";
import { type BodyLimits, type BodySource, decompress, freeBytes, readBytes } from "../../codec/body.ts";
import { decode, readJsonMessage } from "../../codec/decode.ts";
import { DomainError } from "../../domain/errors.ts";
import type { RequestLimits } from "../http/limits.ts";
import type { RpcMethod } from "./rpc-method.ts";
import { HEAD_BYTES, type RpcForm } from "./wire.ts";

const COMPRESSED = 1;
/** The flag of the last envelope of a Connect stream, which contains no message. */
const END_STREAM = 2;

/** Reads and decodes the one message of a call over gRPC, gRPC-Web or Connect, within the limits of the .proto. */
export async function readRpcRequest(
  { method, readJson }: RpcMethod,
  form: RpcForm,
  request: BodySource,
  { maxBytes, share }: RequestLimits,
  remainingMs = Number.POSITIVE_INFINITY,
): Promise<Message> {
  const limits = { maxBytes, share, bodyMs: Math.max(0, Math.min(share.bodyMs, remainingMs)) };
  const encoding = request.headers[form.encodingHeader];
  const body = await readBytes(request, limits);
  const bytes = await (form.isEnveloped
    ? openEnvelope(body, form, encoding, limits)
    : decompressBody(body, encoding, limits));
  if (!form.isJson) return await decode(bytes, share, readBinary(method.input, bytes));
  try {
    return await decode(bytes, share, readJsonMessage(readJson, bytes));
  } finally {
    // Decoded JSON does not refer to the body; a binary message can.
    freeBytes(bytes);
  }
}

function decompressBody(
  body: Buffer,
  encoding: string | string[] | undefined,
  limits: BodyLimits,
): Buffer | Promise<Buffer> {
  return body.length === 0 ? body : decompress(body, encoding, limits);
}

/** The single message in its envelope. */
function openEnvelope(
  body: Buffer,
  form: RpcForm,
  encoding: string | string[] | undefined,
  limits: BodyLimits,
): Buffer | Promise<Buffer> {
  if (body.length === 0) throw notOneMessage();
  checkFlags(body[0] as number, form);
  const end = endOfEnvelope(body, 0, limits.maxBytes);
  if (end < body.length && !isEndOfStream(body, end, form, limits.maxBytes)) throw notOneMessage();
  const bytes = body.subarray(HEAD_BYTES, end);
  if (((body[0] as number) & COMPRESSED) === 0) return bytes;
  // A message flagged as compressed needs an encoding: without one, gRPC and Connect require the code INTERNAL.
  if (encoding === undefined || encoding === "identity") throw new DomainError("unexpected_compression");
  return decompress(bytes, encoding, limits);
}

/** The flags of the message. */
function checkFlags(flags: number, form: RpcForm): void {
  if (form.protocol === "connect" && (flags & END_STREAM) !== 0) throw notOneMessage();
  if ((flags & ~COMPRESSED) === 0) return;
  throw new DomainError("invalid_argument", {
    message: `The message has unknown flags: ${flags.toString(2).padStart(8, "0")}.`,
  });
}

/** Whether the rest of the body is the end of a Connect stream, which some clients send. */
function isEndOfStream(body: Buffer, start: number, form: RpcForm, maxBytes: number): boolean {
  const hasFlag = form.protocol === "connect" && ((body[start] as number) & END_STREAM) !== 0;
  return hasFlag && endOfEnvelope(body, start, maxBytes) === body.length;
}

function endOfEnvelope(body: Buffer, start: number, maxBytes: number): number {
  const head = start + HEAD_BYTES;
  if (body.length < head) throw incomplete();
  const length = body.readUInt32BE(start + 1);
  if (length > maxBytes) throw new DomainError("request_too_large");
  if (head + length > body.length) throw incomplete();
  return head + length;
}

function notOneMessage(): DomainError {
  return new DomainError("unimplemented", { message: "The method takes exactly one message." });
}

function incomplete(): DomainError {
  return new DomainError("invalid_argument", { message: "The message is incomplete." });
}

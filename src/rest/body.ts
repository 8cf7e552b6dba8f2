import { isUtf8 } from "node:buffer";
import { promisify } from "node:util";
import { brotliDecompress, gunzip } from "node:zlib";
import { RestProblem } from "./problem.ts";

/** The body as it comes from the wire, whichever HTTP it is. */
export type BodySource = {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Taken back by the caller, or cut off, before it was complete. */
  readonly aborted: boolean;
  readonly destroyed: boolean;
  /** HTTP/2 only. */
  readonly stream?: { readonly endAfterHeaders: boolean };
  on(event: "data", listener: (chunk: Buffer) => void): unknown;
  on(event: "end" | "close" | "error", listener: () => void): unknown;
  resume(): unknown;
};

/** The caller left before its request was complete: nobody is there to be told. */
export class CallerGone extends Error {}

const DECODERS: Record<string, (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>> = {
  gzip: promisify(gunzip),
  br: promisify(brotliDecompress),
};

export const KNOWN_ENCODINGS = Object.keys(DECODERS).join(", ");

/** The text of a JSON body; empty if there is none. */
export async function readJsonText(source: BodySource, maxBytes: number): Promise<string> {
  const bytes = await readBytes(source, maxBytes);
  if (bytes.length === 0) return "";
  checkContentType(source.headers["content-type"]);
  const plain = await decompress(bytes, source.headers["content-encoding"], maxBytes);
  if (!isUtf8(plain)) throw new RestProblem("invalid", "the body is not valid UTF-8");
  const text = plain.toString("utf8");
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
}

/** Whether there is a body: the headers tell, but HTTP/2 has bodies that no header announces. */
export async function hasBody(source: BodySource): Promise<boolean> {
  const { headers, stream } = source;
  if (headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0) return true;
  if (stream === undefined || stream.endAfterHeaders) return false;
  if (source.aborted || source.destroyed) throw new CallerGone();
  return new Promise((resolve, reject) => {
    source.on("data", () => resolve(true));
    source.on("end", () => (source.aborted ? reject(new CallerGone()) : resolve(false)));
    source.on("close", () => reject(new CallerGone()));
  });
}

function readBytes(source: BodySource, maxBytes: number): Promise<Buffer> {
  const announced = Number(source.headers["content-length"] ?? 0);
  // Nothing would tell later that it ended while the gate was deciding.
  if (source.aborted || source.destroyed) return Promise.reject(new CallerGone());
  return new Promise((resolve, reject) => {
    // One buffer of the announced size; chunks of unknown number are put together at the end.
    const whole = announced > 0 && announced <= maxBytes ? Buffer.allocUnsafe(announced) : undefined;
    const chunks: Buffer[] = [];
    let size = 0;
    source.on("data", (chunk) => {
      if (size > maxBytes) return;
      if (whole) chunk.copy(whole, size);
      else chunks.push(chunk);
      size += chunk.length;
      if (size > maxBytes) {
        chunks.length = 0;
        reject(tooLarge(maxBytes));
      }
    });
    source.on("end", () => {
      // A stream of HTTP/2 that is reset ends like one that is complete.
      if (source.aborted || size < announced) reject(new CallerGone());
      else resolve(whole ? whole.subarray(0, size) : Buffer.concat(chunks));
    });
    source.on("error", () => reject(new CallerGone()));
    source.on("close", () => reject(new CallerGone()));
  });
}

function checkContentType(header: string | string[] | undefined): void {
  const [type, ...parameters] = String(header ?? "")
    .toLowerCase()
    .split(";")
    .map((part) => part.trim());
  const charset = parameters
    .find((parameter) => parameter.startsWith("charset="))
    ?.slice(8)
    .replaceAll('"', "");
  if (type !== "application/json" || (charset !== undefined && charset !== "utf-8" && charset !== "utf8")) {
    throw new RestProblem("unsupported_media_type", "send the body as application/json in UTF-8");
  }
}

async function decompress(
  bytes: Buffer,
  header: string | string[] | undefined,
  maxBytes: number,
): Promise<Buffer> {
  const encoding = String(header ?? "identity")
    .trim()
    .toLowerCase();
  if (encoding === "identity" || encoding === "") return bytes;
  const decode = Object.hasOwn(DECODERS, encoding) ? DECODERS[encoding] : undefined;
  if (!decode)
    throw new RestProblem("unsupported_media_type", `a body can be compressed as ${KNOWN_ENCODINGS}`);
  try {
    return await decode(bytes, { maxOutputLength: maxBytes });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE") throw tooLarge(maxBytes);
    throw new RestProblem("invalid", `the body is not valid ${encoding}`);
  }
}

function tooLarge(maxBytes: number): RestProblem {
  return new RestProblem(
    "too_large",
    `a body can have at most ${maxBytes} bytes, also when it is decompressed`,
  );
}

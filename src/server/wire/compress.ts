import { pipeline } from "node:stream";
import { promisify } from "node:util";
import { brotliCompress, constants, createBrotliCompress, createGzip, gzip } from "node:zlib";

/** Below this size compression costs more than it saves; Connect uses the same limit. */
export const MIN_COMPRESSED_BYTES = 1_024;
/** Brotli's default quality takes a hundred times as long and saves only a tenth more. */
const BROTLI_QUALITY = 4;

/** The default window takes 8 MiB for each response. */
const STREAMED_WINDOW_BITS = 18;

const brotliAsync = promisify(brotliCompress);
const gzipAsync = promisify(gzip);

const ENCODERS = {
  br: (text: string | Uint8Array) => brotliAsync(text, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } }),
  gzip: (text: string | Uint8Array) => gzipAsync(text),
} as const;

export type Encoding = keyof typeof ENCODERS;

const ENCODINGS = Object.keys(ENCODERS) as Encoding[];

/** The encoding of a response: the one the caller prefers, Brotli before gzip; undefined for none. */
export function chooseEncoding(accepted: readonly string[], offered: readonly Encoding[] = ENCODINGS): Encoding | undefined {
  if (accepted.length === 0) return undefined;
  const weights = readWeights(accepted.join(","));
  const weight = (name: string) => weights.get(name) ?? weights.get("*") ?? 0;
  const [best] = offered.toSorted((a, b) => weight(b) - weight(a));
  if (best === undefined || weight(best) === 0) return undefined;
  // "identity" wins only if the caller gives it a higher weight than every compression.
  return (weights.get("identity") ?? 0) > weight(best) ? undefined : best;
}

export function compress(encoding: Encoding, text: string | Uint8Array): Promise<Buffer> {
  return ENCODERS[encoding](text);
}

const STREAMS = {
  br: () =>
    createBrotliCompress({
      params: {
        [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY,
        [constants.BROTLI_PARAM_LGWIN]: STREAMED_WINDOW_BITS,
      },
    }),
  gzip: () => createGzip(),
} as const;

export function compressPieces(encoding: Encoding, pieces: AsyncIterable<string | Buffer>): AsyncIterable<Buffer> {
  // An error ends the reading too.
  return pipeline(pieces, STREAMS[encoding](), () => undefined);
}

function readWeights(header: string): Map<string, number> {
  const weights = new Map<string, number>();
  for (const part of header.toLowerCase().split(",")) {
    const [name, ...parameters] = part.split(";").map((piece) => piece.trim());
    const q = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2);
    const weight = q === undefined ? 1 : Number(q);
    if (name) weights.set(name, weight >= 0 && weight <= 1 ? weight : 0);
  }
  return weights;
}

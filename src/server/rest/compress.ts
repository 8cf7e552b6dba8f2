import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";

/** Below this size compression costs more than it saves. */
const MIN_BYTES = 1_024;
/** The default of Brotli takes a hundred times as long for a tenth less. */
const BROTLI_QUALITY = 4;

const brotliAsync = promisify(brotliCompress);
const gzipAsync = promisify(gzip);

const ENCODERS = {
  br: (text: string | Uint8Array) =>
    brotliAsync(text, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } }),
  gzip: (text: string | Uint8Array) => gzipAsync(text),
} as const;

export type Encoding = keyof typeof ENCODERS;

export function isWorthCompressing(text: string): boolean {
  return text.length >= MIN_BYTES;
}

/** The encoding for an answer, or undefined for none: what the caller likes best, Brotli before gzip. */
export function chooseEncoding(accepted: string | string[] | undefined, text: string): Encoding | undefined {
  if (accepted === undefined || !isWorthCompressing(text)) return undefined;
  const weights = readWeights(String(accepted));
  const weight = (name: string) => weights.get(name) ?? weights.get("*") ?? 0;
  const [best] = (Object.keys(ENCODERS) as Encoding[]).sort((a, b) => weight(b) - weight(a));
  if (best === undefined || weight(best) === 0) return undefined;
  // Only an identity the caller names as better than any compression wins over it.
  return (weights.get("identity") ?? 0) > weight(best) ? undefined : best;
}

export function compress(encoding: Encoding, text: string | Uint8Array): Promise<Buffer> {
  return ENCODERS[encoding](text);
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

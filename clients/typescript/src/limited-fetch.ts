import { Code, ConnectError } from "@connectrpc/connect";

/** The largest response, and the largest message of a stream. */
const MAX_BYTES = 64 * 2 ** 20;
/** A byte of flags and the length of the message. */
const FRAME_HEAD_BYTES = 5;

/** A fetch whose responses fail when they are too large, because Connect buffers whatever a server announces. */
export function limitedFetch(fetch: typeof globalThis.fetch | undefined): typeof globalThis.fetch {
  return async (input, init) => {
    const response = await (fetch ?? globalThis.fetch)(input, init).catch((error: unknown) => {
      throw unreachable(input, error);
    });
    if (response.body === null) return response;
    const { status, statusText, headers } = response;
    const isStream = headers.get("content-type")?.startsWith("application/connect+") === true;
    const isTooLarge = isStream ? frameLimit() : byteLimit();
    const limit = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
      transform(bytes, controller) {
        if (isTooLarge(bytes)) {
          throw new ConnectError(`The response has more than ${MAX_BYTES} bytes.`, Code.Internal, headers);
        }
        controller.enqueue(bytes);
      },
    });
    return new Response(response.body.pipeThrough(limit), { status, statusText, headers });
  };
}

/** Platforms say only "fetch failed". A call that was aborted keeps its error. */
function unreachable(input: Parameters<typeof globalThis.fetch>[0], error: unknown): unknown {
  if (!(error instanceof TypeError)) return error;
  const { origin } = new URL(input instanceof Request ? input.url : input);
  const reason = error.cause instanceof Error ? error.cause : error;
  // Several addresses of one name have an error each, and the error of all of them has no message.
  const text = reason.message || (reason as { code?: string }).code || error.message;
  return new TypeError(`${origin} cannot be reached: ${text}`, { cause: error });
}

function byteLimit(): (bytes: Uint8Array) => boolean {
  let total = 0;
  return (bytes) => {
    total += bytes.length;
    return total > MAX_BYTES;
  };
}

/** Looks at the lengths that a stream announces for its messages. */
function frameLimit(): (bytes: Uint8Array) => boolean {
  const head = new DataView(new ArrayBuffer(FRAME_HEAD_BYTES));
  let headBytes = 0;
  let remaining = 0;
  return (bytes) => {
    for (let at = 0; at < bytes.length; ) {
      const skipped = Math.min(remaining, bytes.length - at);
      remaining -= skipped;
      at += skipped;
      if (at === bytes.length) break;
      head.setUint8(headBytes++, bytes[at++] as number);
      if (headBytes < FRAME_HEAD_BYTES) continue;
      headBytes = 0;
      remaining = head.getUint32(1);
      if (remaining > MAX_BYTES) return true;
    }
    return false;
  };
}

import type { Message } from "@bufbuild/protobuf";
import { type ContextKey, createContextKey, type Interceptor } from "@connectrpc/connect";

/** The request as the transport decoded it, once its body was read. */
export type Decoded = { readonly message: Message | undefined };

export const decodedKey: ContextKey<Decoded | undefined> = createContextKey<Decoded | undefined>(undefined);

/** Puts the decoded request in the place of the empty one that Connect was given to decode. */
export const takeDecoded: Interceptor = (next) => async (request) => {
  const decoded = request.contextValues.get(decodedKey);
  if (!decoded) return next(request);
  if (!request.stream) return next({ ...request, message: decoded.message ?? request.message });
  return next({ ...request, message: replaced(request.message, decoded) });
};

async function* replaced<M extends Message>(messages: AsyncIterable<M>, decoded: Decoded): AsyncIterable<M> {
  for await (const message of messages) yield (decoded.message as M | undefined) ?? message;
}

import type { Message } from "@bufbuild/protobuf";
import { type ContextKey, createContextKey, type Interceptor } from "@connectrpc/connect";

/** The request that the transport decoded; set once its body is read. */
export type Decoded = { readonly message: Message | undefined };

export const decodedKey: ContextKey<Decoded | undefined> = createContextKey<Decoded | undefined>(undefined);

/** Replaces the empty message that Connect decoded by the decoded request. */
export const takeDecoded: Interceptor = (next) => async (request) => {
  const decoded = request.contextValues.get(decodedKey);
  if (!decoded) return next(request);
  if (!request.stream) return next({ ...request, message: decoded.message ?? request.message });
  return next({ ...request, message: replaced(request.message, decoded) });
};

async function* replaced<M extends Message>(messages: AsyncIterable<M>, decoded: Decoded): AsyncIterable<M> {
  for await (const message of messages) yield (decoded.message as M | undefined) ?? message;
}

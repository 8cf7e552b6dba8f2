import type { DescMessage, Message } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import { validateRequest } from "../../rules/validate.ts";

/** Checks every request against the rules of its .proto. */
export const validate: Interceptor = (next) => async (request) => {
  if (!request.stream) {
    validateRequest(request.method.input, request.message);
    return await next(request);
  }
  return await next({ ...request, message: validated(request.method.input, request.message) });
};

async function* validated<M extends Message>(
  desc: DescMessage,
  messages: AsyncIterable<M>,
): AsyncIterable<M> {
  for await (const message of messages) {
    validateRequest(desc, message);
    yield message;
  }
}

import type { DescMessage, DescMethodUnary, MessageInitShape } from "@bufbuild/protobuf";
import { OPERATOR_TOKEN, type TestApp } from "./app.ts";
import { bearer, type ProtocolCase, protocols } from "./protocols.ts";

/** All but REST, which the operator API does not support. */
export const operatorProtocols: readonly ProtocolCase[] = protocols.filter(({ name }) =>
  /^(gRPC|Connect)/.test(name),
);

/** Makes one call on the operator listener with the operator token, on its own connection. */
export function operatorCall({ open }: ProtocolCase, app: () => TestApp) {
  return async <I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
  ) => {
    const caller = open(app().adminUrl);
    try {
      return await caller.call(method, request, bearer(OPERATOR_TOKEN));
    } finally {
      caller.close();
    }
  };
}

import type { DescMessage, DescMethodUnary, MessageInitShape } from "@bufbuild/protobuf";
import { OPERATOR_TOKEN, type TestApp } from "./app.ts";
import { callOf, type ProtocolCase, protocols } from "./protocols.ts";

/** All but REST, which the operator API does not support. */
export const operatorProtocols: readonly ProtocolCase[] = protocols.filter(({ name }) => /^(gRPC|Connect)/.test(name));

/** Calls the operator listener with the operator token. Errors are outcomes. */
export function operatorCall(app: TestApp) {
  const call = callOf({
    get url() {
      return app.adminUrl;
    },
  });
  return <I extends DescMessage, O extends DescMessage>(method: DescMethodUnary<I, O>, request: MessageInitShape<I>) =>
    call(method, request, OPERATOR_TOKEN);
}

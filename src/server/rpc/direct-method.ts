import {
  create,
  type DescMethod,
  type DescService,
  type Message,
  toBinary,
  toJsonString,
} from "@bufbuild/protobuf";
import type { MethodFunction } from "../../api/define-service.ts";
import type { BodyShare } from "../../codec/body-budget.ts";
import type { Admitted } from "../gate/gate.ts";
import type { RequestHead } from "../http/message.ts";
import type { IncomingCall } from "../incoming-call.ts";
import type { Observation } from "../observation.ts";
import { ServiceCall } from "../service-call.ts";
import type { RpcResponse } from "./rpc-response.ts";

/** A call whose request is read and valid. */
export type DirectCall = {
  readonly request: RequestHead;
  readonly call: IncomingCall;
  readonly admitted: Admitted;
  readonly response: RpcResponse;
  readonly observation: Observation;
  readonly share: BodyShare;
};

/** A method that is served without Connect. */
export type DirectMethod = {
  readonly method: DescMethod;
  /** Returns a promise of the response, or an iterable of responses. */
  readonly invoke: (message: Message, call: DirectCall) => unknown;
  readonly writeJson: (message: Message) => string;
};

/** The methods of a service, which get an ApiCall. */
export function directMethods(
  service: DescService,
  methods: Readonly<Record<string, MethodFunction>>,
): DirectMethod[] {
  return service.methods.flatMap((method) => {
    const invoke = methods[method.localName];
    if (!invoke) return [];
    const rpc = `${service.typeName}/${method.name}`;
    return {
      method,
      invoke: (message, { call, admitted, response, observation, share }) =>
        invoke(message as never, new ServiceCall(rpc, call, admitted, response, observation, share)),
      writeJson: (output) => toJsonString(method.output, output),
    };
  });
}

/** The bytes of a response, which a service returns as a message or as its fields. */
export function bytesOf({ method, writeJson }: DirectMethod, isJson: boolean, value: unknown): Uint8Array {
  const message = create(method.output, value as never);
  return isJson ? Buffer.from(writeJson(message)) : toBinary(method.output, message);
}

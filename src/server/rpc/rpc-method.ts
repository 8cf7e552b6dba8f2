import type { DescMethod } from "@bufbuild/protobuf";
import type { Reader, Readers } from "../../codec/json/reader.ts";
import { maxBodyBytesOf } from "../../rules/limits.ts";
import { type Policy, PolicyError } from "../../rules/policy.ts";

/** A method with everything that can be prepared before its first call. */
export type RpcMethod = {
  /** "vx.v1.MeService/GetMe" */
  readonly rpc: string;
  readonly method: DescMethod;
  readonly policy: Policy;
  readonly maxBodyBytes: number;
  readonly readJson: Reader;
};

export type RpcMethodOptions = {
  readonly policies: ReadonlyMap<DescMethod, Policy>;
  /** The configured limit; a method whose rules allow less has a lower one. */
  readonly maxBodyBytes: number;
};

export function rpcMethodOf(
  method: DescMethod,
  readers: Readers,
  { policies, maxBodyBytes }: RpcMethodOptions,
): RpcMethod {
  const rpc = `${method.parent.typeName}/${method.name}`;
  const policy = policies.get(method);
  if (!policy) throw new PolicyError(`${rpc} is served but has no policy`);
  return {
    rpc,
    method,
    policy,
    maxBodyBytes: maxBodyBytesOf(method.input, maxBodyBytes),
    readJson: readers.of(method.input),
  };
}

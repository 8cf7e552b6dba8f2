import { type DescField, type DescMethod, type DescService, getOption } from "@bufbuild/protobuf";
import { json_schema as jsonSchemaOption } from "../../gen/vx/options/v1/options_pb.js";
import { basePathOf, type Policy, policyOf } from "../../src/rules/policy.ts";
import { type HttpBinding, httpBindings } from "../../src/server/rest/http-rule.ts";
import { isAtOrBelow } from "../../src/server/rest/surfaces.ts";
import { rulesOf } from "./rules.ts";

/** One address and verb. Two methods that share it, one of them selected by a field of the body, are one operation. */
export type Operation = {
  readonly id: string;
  /** Where the second address of the operation begins; empty if it has none. */
  readonly basePath: string;
  readonly service: DescService;
  readonly binding: HttpBinding;
  /** The method that serves the calls with a header at the same address, which is another operation of the document. */
  readonly withHeader: { readonly name: string; readonly method: DescMethod } | undefined;
  readonly policy: Policy;
  readonly usual: DescMethod;
  /** The method that responds with a stream of events, and the body field that selects it. */
  readonly streamed: { readonly method: DescMethod; readonly by: string } | undefined;
  /** Fields in the path, in the query and in the body. */
  readonly pathFields: readonly DescField[];
  readonly queryFields: readonly DescField[];
  readonly bodyFields: readonly DescField[];
};

type Address = {
  readonly service: DescService;
  readonly bindings: HttpBinding[];
  /** Where the second address of the operation begins; empty if it has none. */
  basePath: string;
  /** Whether the binding comes from additional_bindings, so that the method's name is already taken. */
  readonly additional: boolean;
};

export function operationsOf(services: readonly DescService[]): Operation[] {
  const addresses = new Map<string, Address>();
  const withHeader = new Map<string, Operation["withHeader"]>();
  for (const service of services) {
    for (const method of service.methods) {
      for (const [i, binding] of httpBindings(method).entries()) {
        const name = `${binding.verb} ${binding.path}`;
        const basePath = basePathOf(service);
        const isSecond = basePath !== "" && isAtOrBelow(binding.path, basePath);
        // An address has one operation, so a method that a header selects is described at its second address.
        if (binding.selectedByHeader !== "" && !isSecond) {
          withHeader.set(name, { name: binding.selectedByHeader, method });
          continue;
        }
        if (binding.selectedByHeader === "" && isSecond) continue;
        const additional = i > 0 && !isSecond;
        const address = addresses.get(name) ?? { service, bindings: [], basePath, additional };
        address.bindings.push(binding);
        addresses.set(name, address);
      }
    }
  }
  return [...addresses].map(([name, address]) => ({
    ...toOperation(address),
    withHeader: withHeader.get(name),
  }));
}

function toOperation({ service, bindings, basePath, additional }: Address): Omit<Operation, "withHeader"> {
  const binding = bindings.find(({ selectedBy }) => !selectedBy);
  if (!binding) throw new Error(`${bindings[0]?.path} is served only when a field is set`);
  const { method, variables, verb, hasBody } = binding;
  const others = method.input.fields.filter((field) => !variables.includes(field));
  return {
    basePath,
    id: additional ? `${method.name}By${verb.charAt(0)}${verb.slice(1).toLowerCase()}` : method.name,
    service,
    binding,
    policy: policyOf(method),
    usual: method,
    streamed: streamedOf(method, bindings),
    pathFields: variables,
    queryFields: hasBody ? [] : others,
    bodyFields: hasBody ? others : [],
  };
}

function streamedOf(usual: DescMethod, bindings: readonly HttpBinding[]): Operation["streamed"] {
  const binding = bindings.find(({ selectedBy }) => selectedBy);
  if (!binding?.selectedBy) return undefined;
  const fieldsOf = ({ input }: DescMethod) =>
    JSON.stringify(
      input.fields.map((field) => [field.name, field.proto.type, rulesOf(field), getOption(field, jsonSchemaOption)]),
    );
  // Both methods share one description of the body.
  if (fieldsOf(usual) !== fieldsOf(binding.method)) {
    throw new Error(`${usual.name} and ${binding.method.name} share an address but not their fields`);
  }
  return { method: binding.method, by: binding.selectedBy.name };
}

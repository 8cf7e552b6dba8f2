import { type DescField, type DescMethod, type DescService, getOption } from "@bufbuild/protobuf";
import { json_schema as jsonSchemaOption } from "../../gen/vx/options/v1/options_pb.js";
import { type Policy, policyOf } from "../../src/rules/policy.ts";
import { basePathOf } from "../../src/rules/surface.ts";
import { type HttpBinding, httpBindings } from "../../src/server/rest/http-rule.ts";
import { isAtOrBelow } from "../../src/server/rest/surface-paths.ts";
import { rulesOf } from "./rules.ts";

/** One address and verb. Two methods that share it, one of them selected by a field of the body, are one operation. */
export type Operation = {
  readonly id: string;
  /** Where the second address of the operation begins; empty if it has none. */
  readonly basePath: string;
  readonly service: DescService;
  readonly binding: HttpBinding;
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
  for (const service of services) {
    for (const method of service.methods) {
      for (const [i, binding] of httpBindings(method).entries()) {
        // Calls with a header get another form of the same operation, which no client is generated from.
        if (binding.selectedByHeader !== "") continue;
        const basePath = basePathOf(service);
        if (basePath !== "" && isAtOrBelow(binding.path, basePath)) continue;
        const name = `${binding.verb} ${binding.path}`;
        const address = addresses.get(name) ?? { service, bindings: [], basePath, additional: i > 0 };
        address.bindings.push(binding);
        addresses.set(name, address);
      }
    }
  }
  return [...addresses.values()].map(toOperation);
}

function toOperation({ service, bindings, basePath, additional }: Address): Operation {
  const binding = bindings.find(({ selectedBy }) => !selectedBy);
  if (!binding) throw new Error(`${bindings[0]?.path} is served only when a field is set`);
  const { method, template, verb, body } = binding;
  if (body !== "*" && body !== undefined)
    throw new Error(`${method.name}: a body field is not described yet`);
  const inPath = template.variables.map(({ fieldPath }) => fieldPath);
  const pathFields = inPath.map((name) => {
    const field = method.input.fields.find((candidate) => candidate.name === name);
    if (!field) throw new Error(`${method.name}: a nested field in the path is not described yet`);
    return field;
  });
  const others = method.input.fields.filter(({ name }) => !inPath.includes(name));
  return {
    basePath,
    id: additional ? `${method.name}By${verb.charAt(0)}${verb.slice(1).toLowerCase()}` : method.name,
    service,
    binding,
    policy: policyOf(method),
    usual: method,
    streamed: streamedOf(method, bindings),
    pathFields,
    queryFields: body === "*" ? [] : others,
    bodyFields: body === "*" ? others : [],
  };
}

function streamedOf(usual: DescMethod, bindings: readonly HttpBinding[]): Operation["streamed"] {
  const binding = bindings.find(({ selectedBy }) => selectedBy);
  if (!binding?.selectedBy) return undefined;
  const fieldsOf = ({ input }: DescMethod) =>
    JSON.stringify(
      input.fields.map((field) => [
        field.name,
        field.proto.type,
        rulesOf(field),
        getOption(field, jsonSchemaOption),
      ]),
    );
  // Both methods share one description of the body.
  if (fieldsOf(usual) !== fieldsOf(binding.method)) {
    throw new Error(`${usual.name} and ${binding.method.name} share an address but not their fields`);
  }
  return { method: binding.method, by: binding.selectedBy.name };
}

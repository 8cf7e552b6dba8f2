import type { DescField, DescMethod, DescService } from "@bufbuild/protobuf";
import { type Policy, policyOf } from "../../policy/policy.ts";
import { type HttpBinding, httpBindings } from "../http-rule.ts";

/** One address and verb. Two methods that share it, one of them selected by a field of the body, are one operation. */
export type Operation = {
  readonly id: string;
  readonly service: DescService;
  readonly binding: HttpBinding;
  readonly policy: Policy;
  readonly usual: DescMethod;
  /** Answers with a stream of events. */
  readonly streamed: DescMethod | undefined;
  /** Fields in the path, in the query, in the body. */
  readonly pathFields: readonly DescField[];
  readonly queryFields: readonly DescField[];
  readonly hasBody: boolean;
};

export function operationsOf(services: readonly DescService[]): Operation[] {
  const shared = new Map<string, { service: DescService; bindings: HttpBinding[]; additional: boolean }>();
  for (const service of services) {
    for (const method of service.methods) {
      for (const [i, binding] of httpBindings(method).entries()) {
        const address = `${binding.verb} ${binding.path}`;
        const found = shared.get(address) ?? { service, bindings: [], additional: i > 0 };
        found.bindings.push(binding);
        shared.set(address, found);
      }
    }
  }
  return [...shared.values()].map(toOperation);
}

function toOperation({
  service,
  bindings,
  additional,
}: {
  service: DescService;
  bindings: HttpBinding[];
  additional: boolean;
}): Operation {
  const binding = bindings.find(({ selectedBy }) => !selectedBy);
  if (!binding) throw new Error(`${bindings[0]?.path} is served only when a field is set`);
  const { method, template, verb, body } = binding;
  if (body !== "*" && body !== undefined) throw new Error(`${method.name}: a body field is not described yet`);
  const inPath = template.variables.map(({ fieldPath }) => fieldPath);
  const pathFields = inPath.map((name) => {
    const field = method.input.fields.find((candidate) => candidate.name === name);
    if (!field) throw new Error(`${method.name}: a nested field in the path is not described yet`);
    return field;
  });
  return {
    id: additional ? `${method.name}By${verb.charAt(0)}${verb.slice(1).toLowerCase()}` : method.name,
    service,
    binding,
    policy: policyOf(method),
    usual: method,
    streamed: bindings.find(({ selectedBy }) => selectedBy)?.method,
    pathFields,
    queryFields: body === "*" ? [] : method.input.fields.filter(({ name }) => !inPath.includes(name)),
    hasBody: body === "*",
  };
}

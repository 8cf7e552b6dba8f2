import { capitalized } from "./capitalized.ts";

/** The methods among these that the log can have. Pages of the payment provider, simulated payments and ended sessions are not in it. */
export function changesOf(services: readonly { readonly methods: readonly { readonly name: string }[] }[]) {
  return services
    .flatMap(({ methods }) => methods.map(({ name }) => name))
    .filter((name) => !/^(Get|List|Search|Count|Audit|Export|Watch|EndSession|CreateBillingPage|PaySimulated)/.test(name));
}

/** Options of a filter by these methods, in the order of their texts. */
export function methodOptions(methods: readonly string[]): (readonly [value: string, text: string])[] {
  return [...new Set(methods)]
    .map((method) => [method, methodText(method)] as const)
    .toSorted(([, one], [, other]) => one.localeCompare(other));
}

/** "Credit account", "Set plan" */
export function methodText(method: string): string {
  return capitalized(methodWords(method.replace(/^Put/, "Set")));
}

/** "credit account" */
export function methodWords(method: string): string {
  return method.replaceAll(/\B[A-Z]/g, (letter) => ` ${letter}`).toLowerCase();
}

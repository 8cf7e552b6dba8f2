import { capitalized } from "./capitalized.ts";

/** The methods of operators that the log can have. */
export function changesOf({ methods }: { readonly methods: readonly { readonly name: string }[] }) {
  return methods.map(({ name }) => name).filter((name) => !/^(Get|List|Search|Count|Audit|Export)/.test(name));
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

import type { DescService } from "@bufbuild/protobuf";
import { surfaceOf } from "../../rules/surface.ts";
import { httpBindings } from "./http-rule.ts";
import { formOf, type SurfaceForm } from "./surface-form.ts";

export type FormOfPath = (path: string) => SurfaceForm;

/**
 * The form of errors at paths without a route: a path at or below one of a service has the form of that
 * service, every other path has the native form.
 */
export function formsByPath(services: readonly DescService[]): FormOfPath {
  const native = formOf("native");
  const forms: (readonly [path: string, form: SurfaceForm])[] = [];
  for (const service of services) {
    const form = formOf(surfaceOf(service));
    if (form === native) continue;
    for (const { path } of service.methods.flatMap(httpBindings)) forms.push([literalPartOf(path), form]);
  }
  return (path) => forms.find(([above]) => isAtOrBelow(path, above))?.[1] ?? native;
}

/** "/v1/messages" of "/v1/messages/{id}" and of "/v1/messages:count". */
function literalPartOf(template: string): string {
  return template.replace(/\/?[{*:].*$/, "");
}

/** Whether the path is `above`, or continues it after "/" or ":". */
export function isAtOrBelow(path: string, above: string): boolean {
  return path.startsWith(above) && /^(?:[/:]|$)/.test(path.slice(above.length, above.length + 1));
}

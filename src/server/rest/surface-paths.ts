import type { DescService } from "@bufbuild/protobuf";
import { basePathOf, surfaceOf } from "../../rules/surface.ts";
import { httpBindings } from "./http-rule.ts";
import { formOf, type SurfaceForm } from "./surface-form.ts";

/** The form of errors at a path, and of the responses of the methods there. */
export type FormOfPath = (path: string) => SurfaceForm;

/** The starts of the second addresses of the services. */
export function basePathsOf(services: readonly DescService[]): string[] {
  return [...new Set(services.map(basePathOf).filter((path) => path !== ""))];
}

/** The forms of all paths below the second addresses. There, the key can be in the header `x-api-key`. */
export function formsBelow(services: readonly DescService[]): (path: string) => SurfaceForm | undefined {
  const forms = basePathsOf(services).map((above) => {
    const service = services.find((one) => basePathOf(one) === above) as DescService;
    return [above, { ...formOf(surfaceOf(service)), acceptsKeyHeader: true }] as const;
  });
  return (path) => forms.find(([above]) => isAtOrBelow(path, above))?.[1];
}

/**
 * The form of errors at paths without a route: a path at or below one of a service has the form of that
 * service, every other path has the native form.
 */
export function formsByPath(
  services: readonly DescService[],
  formBelow: (path: string) => SurfaceForm | undefined,
): FormOfPath {
  const native = formOf("native");
  const forms: (readonly [path: string, form: SurfaceForm])[] = [];
  for (const service of services) {
    const form = formOf(surfaceOf(service));
    if (form === native) continue;
    for (const { path, selectedByHeader } of service.methods.flatMap(httpBindings))
      if (selectedByHeader === "") forms.push([literalPartOf(path), form]);
  }
  return (path) => formBelow(path) ?? forms.find(([above]) => isAtOrBelow(path, above))?.[1] ?? native;
}

/** "/v1/messages" of "/v1/messages/{id}" and of "/v1/messages:count". */
function literalPartOf(template: string): string {
  return template.replace(/\/?[{*:].*$/, "");
}

/** Whether the path is `above`, or continues it after "/" or ":". */
export function isAtOrBelow(path: string, above: string): boolean {
  return path.startsWith(above) && /^(?:[/:]|$)/.test(path.slice(above.length, above.length + 1));
}

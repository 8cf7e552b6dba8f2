/** What differs between platforms. */
const platform = globalThis as {
  readonly process?: { readonly env?: Readonly<Record<string, string | undefined>> };
  readonly window?: { readonly document?: unknown };
  readonly WorkerGlobalScope?: new () => object;
  readonly navigator?: { readonly userAgent?: string };
};

/** A variable of the environment; undefined in browsers, which have none. */
export function variable(name: string): string | undefined {
  return platform.process?.env?.[name] || undefined;
}

/** Whether this code runs in a page or in a worker of a page. */
export function isBrowser(): boolean {
  if (platform.window?.document !== undefined) return true;
  const { WorkerGlobalScope, navigator } = platform;
  return (
    WorkerGlobalScope !== undefined &&
    platform instanceof WorkerGlobalScope &&
    navigator?.userAgent?.startsWith("Mozilla/") === true
  );
}

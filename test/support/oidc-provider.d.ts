// What the tests use of the package, which has no types.
declare module "oidc-provider" {
  import type { IncomingMessage, ServerResponse } from "node:http";

  type Context = { readonly oidc?: { readonly route?: string }; body: unknown };

  // biome-ignore lint/style/noDefaultExport: that of the package
  export default class Provider {
    constructor(issuer: string, configuration: object);
    callback(): (request: IncomingMessage, response: ServerResponse) => Promise<void>;
    interactionFinished(request: IncomingMessage, response: ServerResponse, result: object): Promise<void>;
    use(middleware: (context: Context, next: () => Promise<void>) => Promise<void>): void;
    readonly Grant: new (
      of: object,
    ) => { addOIDCScope(scope: string): void; save(): Promise<string> };
  }
}

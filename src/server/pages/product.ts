/** How the pages present the product. */
export type Product = {
  readonly name: string;
  readonly logo: Logo | undefined;
  /** Where users get help; an http, https or mailto URL. */
  readonly supportUrl: string | undefined;
};

export type Logo = { readonly bytes: Buffer; readonly contentType: string };

import type { ServePath } from "../http/message.ts";
import { type Html, html } from "./html.ts";
import { asset, NOTHING, pack } from "./packed.ts";

export type Product = {
  readonly name: string;
  readonly logo: Logo | undefined;
  /** Where users get help; an http, https or mailto URL. */
  readonly supportUrl: string | undefined;
  /** Whether customers can add credit on the customer page. */
  readonly takesPayments: boolean;
  /** Whether customers can sign in with OpenID Connect. */
  readonly hasSignIn: boolean;
  /** Whether the page offers the sign-in of the owner of the demo account. */
  readonly offersDemo?: boolean;
  readonly signUp: "closed" | "invite" | "open";
};

export type Logo = { readonly bytes: Buffer; readonly contentType: string };

export const LOGO_PATH = "/docs/assets/logo";

/** What every page shows of the product: name, icon and the bar at the top. */
export function siteValues(product: Product, current: "/" | "/docs"): Record<string, string | Html> {
  const { name, supportUrl } = product;
  const icon = iconOf(product, LOGO_PATH);
  const link = (href: string, text: string) =>
    href === current ? html`<a href="${href}" aria-current="page">${text}</a>` : html`<a href="${href}">${text}</a>`;
  const account = product.hasSignIn && product.signUp === "open" ? "Sign in or sign up" : "Account";
  const support = supportUrl === undefined ? [] : [link(supportUrl, "Support")];
  const header = html`<nav class="site" aria-label="Site">
      <a class="brand" href="/"><img src="${icon}" alt="" height="24">${name}</a>
      <div>${[link("/docs", "API reference"), link("/openapi.json", "OpenAPI"), link("/account", account), ...support]}</div>
    </nav>`;
  return { name, icon, header };
}

const LETTER = `data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect width='16' height='16' rx='4' fill='%234f46e5'/%3E%3Cpath d='m4 5 4 6 4-6' fill='none' stroke='white' stroke-width='2'/%3E%3C/svg%3E`;

/** The address of the product's icon: the path at which its logo is served, or the built-in icon. */
export function iconOf({ logo }: Product, path: string): string {
  return logo ? path : LETTER;
}

export function logoPage({ bytes, contentType }: Logo): ServePath {
  return asset({ load: () => pack(bytes), contentType, contentSecurityPolicy: NOTHING });
}

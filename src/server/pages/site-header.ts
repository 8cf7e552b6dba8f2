import { type Html, html } from "./html.ts";
import { iconOf } from "./logo.ts";
import type { Product } from "./product.ts";

export const LOGO_PATH = "/docs/assets/logo";

/** What every page shows of the product: name, icon and the bar at the top. */
export function siteValues(product: Product, current: "/" | "/docs"): Record<string, string | Html> {
  const { name, supportUrl } = product;
  const icon = iconOf(product, LOGO_PATH);
  const link = (href: string, text: string) =>
    href === current
      ? html`<a href="${href}" aria-current="page">${text}</a>`
      : html`<a href="${href}">${text}</a>`;
  const support = supportUrl === undefined ? [] : [link(supportUrl, "Support")];
  const header = html`<nav class="site" aria-label="Site">
      <a class="brand" href="/"><img src="${icon}" alt="" height="24">${name}</a>
      <div>${[link("/docs", "API reference"), link("/openapi.json", "OpenAPI"), link("/account", "Account"), ...support]}</div>
    </nav>`;
  return { name, icon, header };
}

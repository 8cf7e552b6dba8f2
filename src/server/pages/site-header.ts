import { type Html, html } from "./html.ts";
import type { Product } from "./product.ts";

export const LOGO_PATH = "/docs/assets/logo";

const LETTER = `data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect width='16' height='16' rx='4' fill='%234f46e5'/%3E%3Cpath d='m4 5 4 6 4-6' fill='none' stroke='white' stroke-width='2'/%3E%3C/svg%3E`;

/** What every page shows of the product: name, icon and the bar at the top. */
export function siteValues(product: Product, current: "/" | "/docs"): Record<string, string | Html> {
  const { name, logo, supportUrl } = product;
  const icon = logo ? LOGO_PATH : LETTER;
  const link = (href: string, text: string) =>
    href === current
      ? html`<a href="${href}" aria-current="page">${text}</a>`
      : html`<a href="${href}">${text}</a>`;
  const support = supportUrl === undefined ? [] : [link(supportUrl, "Support")];
  const header = html`<nav class="site" aria-label="Site">
      <a class="brand" href="/"><img src="${icon}" alt="" height="24">${name}</a>
      <div>${[link("/docs", "API reference"), link("/openapi.json", "OpenAPI"), ...support]}</div>
    </nav>`;
  return { name, icon, header };
}

import type { ServePath } from "../http.ts";
import { asset } from "./asset.ts";
import { NOTHING } from "./csp.ts";
import { pack } from "./packed.ts";
import type { Logo, Product } from "./product.ts";

const LETTER = `data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect width='16' height='16' rx='4' fill='%234f46e5'/%3E%3Cpath d='m4 5 4 6 4-6' fill='none' stroke='white' stroke-width='2'/%3E%3C/svg%3E`;

/** The address of the product's icon: the path at which its logo is served, or the built-in icon. */
export function iconOf({ logo }: Product, path: string): string {
  return logo ? path : LETTER;
}

export function logoPage({ bytes, contentType }: Logo): ServePath {
  return asset({ load: () => pack(bytes), contentType, contentSecurityPolicy: NOTHING });
}

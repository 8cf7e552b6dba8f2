import type { Product } from "../../src/server/pages/site-header.ts";

/** What the pages show without settings. */
export const PRODUCT: Product = {
  name: "vx",
  logo: undefined,
  supportUrl: undefined,
  takesPayments: false,
  hasSignIn: false,
  signUp: "closed",
};

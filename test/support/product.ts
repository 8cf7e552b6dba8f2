/** What the pages show without settings. */
export const PRODUCT = {
  name: "vx",
  logo: undefined,
  supportUrl: undefined,
  takesPayments: false,
  hasSignIn: false,
};

const {
  name = "",
  icon = "",
  support = "",
  payments = "",
  currency = "USD",
  signIn = "",
} = document.body.dataset;

/** The product that the server's settings name. `supportUrl` is empty if there is none. */
export const PRODUCT = {
  name,
  icon,
  supportUrl: support,
  takesPayments: payments !== "",
  hasSignIn: signIn !== "",
  currency,
} as const;

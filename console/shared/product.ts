const {
  name = "",
  icon = "",
  support = "",
  payments = "",
  currency = "USD",
  signIn = "",
  signUp = "",
  demo = "",
} = document.body.dataset;

/** The product that the server's settings name. `supportUrl` is empty if there is none. */
export const PRODUCT = {
  name,
  icon,
  supportUrl: support,
  takesPayments: payments !== "",
  hasSignIn: signIn !== "",
  /** "closed", "invite" or "open": who may sign up. */
  signUp,
  /** Whether the page offers the sign-in of the owner of the demo account. */
  offersDemo: demo !== "",
  currency,
} as const;

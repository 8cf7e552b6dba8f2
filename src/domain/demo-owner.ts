/**
 * The identity of the owner of the demo account, whom no provider knows. An evaluator signs in as this person without a
 * credential: see createDemoOwner.
 */
export const DEMO_OWNER = {
  issuer: "vx:demo",
  subject: "owner",
  verifiedEmail: "owner@demo.example",
} as const;

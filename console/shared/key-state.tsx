import { StateBadge } from "./states.tsx";

const TONES = { active: "good", expired: "warn", revoked: "neutral" } as const;

/** Whether a key works: "active", "expired" or "revoked". */
export function KeyState({ state }: { readonly state: string }) {
  const tone = state in TONES ? TONES[state as keyof typeof TONES] : "neutral";
  return <StateBadge tone={tone} state={state} />;
}

import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { ApiKey } from "../../gen/vx/v1/key_pb.js";
import { StateBadge } from "./states.tsx";
import { longTimeText } from "./time.tsx";

const TONES = { active: "good", expired: "warn", revoked: "neutral" } as const;

/** Until when the secret before the last rotation works; undefined if it does not. */
export function previousText({ previousExpiresAt: at }: Pick<ApiKey, "previousExpiresAt">): string | undefined {
  return at && timestampDate(at) > new Date() ? `The previous secret works until ${longTimeText(at)}.` : undefined;
}

/** Whether a key works: "active", "expired" or "revoked". */
export function KeyState({ state }: { readonly state: string }) {
  const tone = state in TONES ? TONES[state as keyof typeof TONES] : "neutral";
  return <StateBadge tone={tone} state={state} />;
}

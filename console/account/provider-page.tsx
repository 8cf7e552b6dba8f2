import { useEffect, useState } from "preact/hooks";
import type { TopUp } from "../../gen/vx/v1/top_up_pb.js";
import { Notice } from "../shared/states.tsx";
import { ticks, useStream } from "../shared/use-live.ts";
import { useQuery } from "../shared/use-query.ts";
import { hrefOf } from "../shared/use-route.ts";
import type { Viewer } from "./viewer.ts";

/**
 * Goes to a page of the payment provider, which returns to the payments. Returns false for a key, which this tab would forget: its
 * viewer follows a link that opens another tab.
 */
export function openProviderPage({ membership }: Viewer, url: string): boolean {
  if (membership === undefined || !isProviderPage(url)) return false;
  // After the dialog is closed, which changes the address.
  setTimeout(() => location.assign(url));
  return true;
}

/** Whether an address is that of a page of the provider, or of the simulated one. */
export function isProviderPage(url: string): boolean {
  return url.startsWith("https://") || url.startsWith("/account#");
}

type ReturnedProps = { readonly viewer: Viewer; readonly onDone: () => void };

/** What became of the payment from whose page the customer returned. The provider tells the server within seconds. */
export function ReturnedPayment({ viewer: { topUpService }, onDone }: ReturnedProps) {
  const [id] = useState(takeReturned);
  const { data: topUp, reload } = useQuery(
    async (signal) => (id === "" ? undefined : (await topUpService.getTopUp({ id }, { signal })).topup),
    [id],
  );
  const state = topUp?.state;
  useStream(state === "pending" ? id : undefined, ticks, reload);
  useEffect(() => {
    if (state !== undefined && state !== "pending") onDone();
  }, [state]);
  return topUp ? <Text topUp={topUp} /> : null;
}

function Text({ topUp: { state, amount } }: { readonly topUp: TopUp }) {
  if (state === "pending")
    return <Notice tone="info">Your payment of {amount} is being confirmed. This takes a few seconds.</Notice>;
  if (state !== "paid") return null;
  return (
    <Notice tone="good">
      {amount} is credited. <a href={hrefOf("overview")}>Back to the overview</a>
    </Notice>
  );
}

/** Takes the id out of the address, so that a reload does not show the payment again. */
function takeReturned(): string {
  const id = new URLSearchParams(location.search).get("topup") ?? "";
  if (id !== "") history.replaceState(null, "", `/account${location.hash}`);
  return id;
}

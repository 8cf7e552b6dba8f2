import { Code, ConnectError } from "@connectrpc/connect";
import type { LedgerEntry } from "../../gen/vx/v1/ledger_pb.js";
import { PageHeader } from "../shared/frame.tsx";
import { LedgerDownload } from "../shared/ledger-download.tsx";
import { filterOf, requestOf } from "../shared/ledger-filters.tsx";
import { LedgerList } from "../shared/ledger-list.tsx";
import { PAGE_SIZE } from "../shared/list-download.tsx";
import { numberText } from "../shared/money.tsx";
import { hrefOf } from "../shared/use-route.ts";
import type { Viewer } from "./viewer.ts";

type LedgerSectionProps = { readonly viewer: Viewer; readonly params: URLSearchParams };

/** All changes of the balance, with filters. */
export function LedgerSection({ viewer, params }: LedgerSectionProps) {
  const filter = filterOf(params);
  const source = {
    id: viewer.id,
    list: viewer.ledgerService.listEntries,
    find: async (id: string, options: { readonly signal: AbortSignal }) => {
      if (!GENERATION_ID.test(id)) return [];
      const { entry } = await viewer.ledgerService.getGeneration({ id }, options).catch(ifNotFound);
      return entry ? [entry] : [];
    },
    section: "ledger",
    href: hrefOf("ledger"),
    choicesOf: async () => {
      const [models, keys] = await Promise.all([viewer.modelIds(), viewer.keyNames()]);
      return { models, keys };
    },
    keyHref: () => hrefOf("keys"),
  };
  return (
    <>
      <PageHeader title="Ledger">
        <LedgerDownload
          source={source}
          request={requestOf(filter)}
          note={`Each ${numberText(PAGE_SIZE)} entries count as one request of your key.`}
        />
      </PageHeader>
      <LedgerList source={source} filter={filter} />
    </>
  );
}

/** Other texts match no generation. */
const GENERATION_ID = /^(gen|resp|msg)_[0-9a-z]{26}$/;

function ifNotFound(error: unknown): { readonly entry?: LedgerEntry } {
  if (error instanceof ConnectError && error.code === Code.NotFound) return {};
  throw error;
}

import { PageHeader } from "../shared/frame.tsx";
import { LedgerDownload, PAGE_SIZE } from "../shared/ledger-download.tsx";
import { filterOf, requestOf } from "../shared/ledger-filters.tsx";
import { LedgerList } from "../shared/ledger-list.tsx";
import { numberText } from "../shared/money.tsx";
import { hrefOf } from "../shared/use-route.ts";
import { MAX_NAMES, type Viewer } from "./viewer.ts";

type LedgerSectionProps = { readonly viewer: Viewer; readonly params: URLSearchParams };

/** All changes of the balance, with filters. */
export function LedgerSection({ viewer, params }: LedgerSectionProps) {
  const filter = filterOf(params);
  const source = {
    id: viewer.me.key,
    list: viewer.ledgerService.listEntries,
    section: "ledger",
    href: hrefOf("ledger"),
    choicesOf: async (signal: AbortSignal) => {
      const [models, keys] = await Promise.all([
        viewer.modelService.listModels({ pageSize: MAX_NAMES }, { signal }),
        viewer.keyNames(),
      ]);
      return { models: models.data.map(({ id }) => id), keys };
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

import { useState } from "preact/hooks";
import type { CatalogModel } from "../../gen/vx/admin/v1/admin_pb.js";
import { Button } from "../shared/button.tsx";
import { type Column, PagedTable } from "../shared/data-table.tsx";
import { PageHeader } from "../shared/frame.tsx";
import { Money, numberText } from "../shared/money.tsx";
import { EmptyState } from "../shared/states.tsx";
import { usePages } from "../shared/use-pages.ts";
import { useApi } from "./operator-session.ts";
import { PriceHistoryDialog } from "./price-history-dialog.tsx";

/** The models of the server's configuration, with their prices and upstreams. */
export function ModelsSection() {
  const api = useApi();
  const [opened, setOpened] = useState<CatalogModel>();
  const pages = usePages(async (pageToken, signal) => {
    const page = await api.listModels({ pageToken, pageSize: 25 }, { signal });
    return { rows: page.models, nextPageToken: page.nextPageToken };
  }, "");
  return (
    <>
      <PageHeader title="Models" />
      <PagedTable
        caption="Models"
        columns={columnsOf(setOpened)}
        keyOf={({ id }) => id}
        pages={pages}
        empty={<EmptyState title="No models" />}
      />
      <p class="muted small">
        Prices are per million tokens. Models and prices are changed in the file of models; the server reads
        it again on SIGHUP.
      </p>
      {opened && <PriceHistoryDialog model={opened.id} onClose={() => setOpened(undefined)} />}
    </>
  );
}

function columnsOf(onOpen: (model: CatalogModel) => void): readonly Column<CatalogModel>[] {
  return [
    {
      header: "Model",
      isRowHeader: true,
      cell: ({ id, aliases, capabilities }) => (
        <>
          {id}
          {aliases.length > 0 && <div class="muted small regular">Also {aliases.join(", ")}</div>}
          {capabilities.length > 0 && <div class="muted small regular">{capabilities.join(", ")}</div>}
        </>
      ),
    },
    {
      header: "Upstreams",
      cell: ({ upstreams }) => (
        <ul class="plain-list">
          {upstreams.map(({ kind, baseUrl, model, weight }) => (
            <li key={`${kind} ${baseUrl} ${model}`} class="wrap">
              {kind}
              {baseUrl !== "" && (
                <span class="muted small">
                  {" "}
                  {hostOf(baseUrl)} · {model}
                </span>
              )}
              {weight > 0 && <span class="muted small"> · weight {weight}</span>}
            </li>
          ))}
        </ul>
      ),
    },
    {
      header: "Context",
      isNumber: true,
      cell: ({ contextWindow }) => numberText(contextWindow),
    },
    { header: "Input", isNumber: true, cell: ({ prices }) => <Money micros={prices?.input ?? 0n} /> },
    { header: "Output", isNumber: true, cell: ({ prices }) => <Money micros={prices?.output ?? 0n} /> },
    {
      header: "Actions",
      isAction: true,
      cell: (model) => (
        <Button onClick={() => onOpen(model)} aria-label={`Price history of ${model.id}`}>
          Price history
        </Button>
      ),
    },
  ];
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : url;
}

import { useState } from "preact/hooks";
import type { Model } from "../../gen/vx/v1/model_pb.js";
import { Button } from "../shared/button.tsx";
import { ProblemNotice, useAction } from "../shared/dialog.tsx";
import { SecretDialog } from "../shared/secret-dialog.tsx";
import { useQuery } from "../shared/use-query.ts";
import { ADD_CREDIT } from "./payments-section.tsx";
import type { Viewer } from "./viewer.ts";

/** Creates the first key of an account, and shows a call to paste. Nothing if there is a key. */
export function FirstKey({ viewer }: { readonly viewer: Viewer }) {
  const { keyService } = viewer;
  const [secret, setSecret] = useState<string>();
  const { isBusy, problem, perform } = useAction();
  const { data } = useQuery(
    async (signal) => {
      const [{ apiKeys }, model] = await Promise.all([
        keyService.listKeys({ pageSize: 1 }, { signal }),
        exampleModel(viewer, signal),
      ]);
      return { hasKey: apiKeys.length > 0, model };
    },
    [viewer.id],
  );
  const create = () =>
    void perform(async () => {
      const key = { name: "First key", scopes: ["generate", "read"] };
      setSecret((await keyService.createKey(key)).secret);
    });
  if (data === undefined || data.hasKey || viewer.refusalOf("createKey") !== undefined) return null;
  const isEmpty = (viewer.account?.availableMicros ?? 0n) <= 0n;
  return (
    <section class="card usage" aria-labelledby="first-key">
      <div>
        <h2 id="first-key">Make your first call</h2>
        <p>
          Calls need an API key. Create one, then paste the command that the page shows into a terminal.
          {isEmpty && " Calls are refused until the account has credit."}
        </p>
      </div>
      {problem && <ProblemNotice problem={problem} />}
      <div class="page-actions">
        <Button tone="primary" onClick={create} isBusy={isBusy} disabled={secret !== undefined}>
          Create key
        </Button>
        {isEmpty && viewer.canPay && viewer.canBill && (
          <a class="button button-plain" href={ADD_CREDIT}>
            Add credit
          </a>
        )}
        <a href="/docs">Read the documentation</a>
      </div>
      {secret !== undefined && (
        <SecretDialog
          what="key"
          secret={secret}
          command={generateCommand(secret, data.model)}
          onClose={() => location.reload()}
        />
      )}
    </section>
  );
}

async function exampleModel({ modelService }: Viewer, signal: AbortSignal): Promise<string> {
  const { data } = await modelService.listModels({ pageSize: 100 }, { signal });
  return exampleOf(data);
}

export function exampleOf(models: readonly Model[]): string {
  return models.find(({ capabilities }) => !capabilities.includes("embeddings"))?.id ?? "";
}

function generateCommand(secret: string, model: string): string {
  const body = JSON.stringify({ model, messages: [{ role: "user", content: "Say hello." }] });
  return [
    `curl ${location.origin}/v1/generate`,
    `-H 'Authorization: Bearer ${secret}'`,
    "-H 'Content-Type: application/json'",
    `-d '${body}'`,
  ].join(" \\\n  ");
}

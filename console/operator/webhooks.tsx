import { ACCOUNT_EVENT_TYPES } from "../shared/account-event-text.ts";
import { PageHeader } from "../shared/frame.tsx";
import { hrefOf } from "../shared/use-route.ts";
import { DELIVERIES_PER_PAGE, type WebhookApi } from "../shared/webhook-api.ts";
import { useWebhooks, WebhookList } from "../shared/webhook-list.tsx";
import { WebhookPage } from "../shared/webhook-page.tsx";
import type { AccountTabProps } from "./account-tab-props.ts";
import { ActionButton } from "./action-button.tsx";
import { accountHref } from "./links.ts";
import { type AdminClient, useApi } from "./operator-session.ts";
import { ReasonDialog } from "./reason-dialog.tsx";

/** The webhooks of operators, or one webhook, also of an account. */
export function WebhooksSection({ params }: { readonly params: URLSearchParams }) {
  const account = params.get("account") ?? "";
  const api = webhooksOf(useApi(), account);
  const id = params.get("id");
  if (id === null) return <OperatorWebhooks api={api} />;
  return (
    <WebhookPage
      api={api}
      id={id}
      key={id}
      state={params.get("state") ?? ""}
      listHref={account === "" ? hrefOf("webhooks") : accountHref(account, { tab: "webhooks" })}
    />
  );
}

function OperatorWebhooks({ api }: { readonly api: WebhookApi }) {
  return (
    <>
      <PageHeader title="Webhooks" />
      <p>They get the events of all accounts and of prices. The page of an account has those of the account.</p>
      <WebhookList api={api} pages={useWebhooks(api)} />
    </>
  );
}

/** The webhooks of an account, as a part of its page. */
export function AccountWebhooks({ account }: AccountTabProps) {
  const api = webhooksOf(useApi(), account.id);
  return <WebhookList api={api} pages={useWebhooks(api)} />;
}

/** @param accountId empty for those of operators */
function webhooksOf(api: AdminClient, accountId: string): WebhookApi {
  return {
    id: accountId,
    list: async (signal) => (await api.listWebhooks({ accountId }, { signal })).webhooks,
    create: (properties, reason) => api.createWebhook({ ...properties, accountId, reason }),
    update: (request, reason) => api.updateWebhook({ ...request, reason }),
    remove: (webhookId, reason) => api.deleteWebhook({ webhookId, reason }),
    rotate: (request, reason) => api.rotateWebhook({ ...request, reason }),
    test: async (webhookId, signal) => (await api.testWebhook({ webhookId }, { signal })).outcome,
    deliveries: async (request, signal) => {
      const page = { ...request, pageSize: DELIVERIES_PER_PAGE };
      const { deliveries, nextPageToken } = await api.listDeliveries(page, { signal });
      return { rows: deliveries, nextPageToken };
    },
    redeliver: (request, reason) => api.redeliver({ ...request, reason }),
    types: ACCOUNT_EVENT_TYPES,
    href: (id) => hrefOf("webhooks", { id, account: accountId }),
    Action: ActionButton,
    Form: ReasonDialog,
  };
}

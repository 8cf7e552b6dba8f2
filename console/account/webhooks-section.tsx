import { ACCOUNT_EVENT_TYPES } from "../shared/account-event-text.ts";
import { PageHeader } from "../shared/frame.tsx";
import { EmptyState } from "../shared/states.tsx";
import { hrefOf } from "../shared/use-route.ts";
import { DELIVERIES_PER_PAGE, type WebhookApi } from "../shared/webhook-api.ts";
import { useWebhooks, WebhookList } from "../shared/webhook-list.tsx";
import { WebhookPage } from "../shared/webhook-page.tsx";
import { Action } from "./action.tsx";
import { PlainForm } from "./key-page.tsx";
import type { Viewer } from "./viewer.ts";

type WebhooksSectionProps = { readonly viewer: Viewer; readonly params: URLSearchParams };

/** The webhooks of the account, or one of them. */
export function WebhooksSection({ viewer, params }: WebhooksSectionProps) {
  const api = webhooksOf(viewer);
  const id = params.get("id");
  if (id === null) return <AllWebhooks viewer={viewer} api={api} />;
  return <WebhookPage api={api} id={id} key={id} state={params.get("state") ?? ""} listHref={hrefOf("webhooks")} />;
}

function AllWebhooks({ viewer: { me }, api }: { readonly viewer: Viewer; readonly api: WebhookApi }) {
  const pages = useWebhooks(api);
  return (
    <>
      <PageHeader title="Webhooks" />
      {pages.problem?.reason === "INSUFFICIENT_SCOPE" ? (
        <div class="panel">
          <EmptyState title="This key cannot manage webhooks">
            <p>
              Webhooks need a key with the scope “webhooks”. You are signed in with “{me?.keyName}” ({me?.key}
              ), which does not have it. Sign out, then sign in with a key that does.
            </p>
          </EmptyState>
        </div>
      ) : (
        <WebhookList api={api} pages={pages} />
      )}
    </>
  );
}

function webhooksOf(viewer: Viewer): WebhookApi {
  const { webhookService } = viewer;
  return {
    id: viewer.id,
    list: async (signal) => (await webhookService.listWebhooks({}, { signal })).webhooks,
    create: (properties) => webhookService.createWebhook(properties),
    update: (request) => webhookService.updateWebhook(request),
    remove: (webhookId) => webhookService.deleteWebhook({ webhookId }),
    rotate: (request) => webhookService.rotateWebhook(request),
    test: async (webhookId, signal) => (await webhookService.testWebhook({ webhookId }, { signal })).outcome,
    deliveries: async (request, signal) => {
      const page = { ...request, pageSize: DELIVERIES_PER_PAGE };
      const { deliveries, nextPageToken } = await webhookService.listDeliveries(page, { signal });
      return { rows: deliveries, nextPageToken };
    },
    redeliver: (request) => webhookService.redeliver(request),
    types: ACCOUNT_EVENT_TYPES,
    href: (id) => hrefOf("webhooks", { id }),
    Action: (action) => <Action {...action} viewer={viewer} />,
    Form: PlainForm,
  };
}

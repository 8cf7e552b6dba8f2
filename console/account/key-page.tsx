import type { ApiKey } from "../../gen/vx/v1/key_pb.js";
import { type ChangeDialog, FormDialog } from "../shared/form-dialog.tsx";
import { PageHeader } from "../shared/frame.tsx";
import { LimitEditor } from "../shared/limit-editor.tsx";
import { limitText, useLimits } from "../shared/limit-list.tsx";
import { useQuery } from "../shared/use-query.ts";
import { hrefOf } from "../shared/use-route.ts";
import { Action } from "./action.tsx";
import type { Viewer } from "./viewer.ts";

/** Each refresh counts as a request of the key that is signed in. */
const REFRESH_MS = 30_000;

/** Customers need no reason for a change. */
export const PlainForm: ChangeDialog = ({ onSubmit, ...form }) => <FormDialog {...form} onSubmit={() => onSubmit("")} />;

/** The limits of a key itself, without those of its plan, its account and its ancestors. */
export function KeyPage({ viewer, id }: { readonly viewer: Viewer; readonly id: string }) {
  const key = useQuery(async (signal) => await keyOf(viewer, id, signal), [id]);
  const { data: models = [] } = useQuery(viewer.modelIds, []);
  const limits = useLimits(async (_, signal) => (await keyOf(viewer, id, signal))?.limits ?? [], id, REFRESH_MS);
  /** A request has all limits of a key. */
  const replace = async (change: (limits: ApiKey["limits"]) => readonly LimitProperties[]) => {
    const present = (await keyOf(viewer, id))?.limits ?? [];
    await viewer.keyService.updateKey({
      keyId: id,
      limits: [...change(present)],
      updateMask: { paths: ["limits"] },
    });
  };
  return (
    <>
      <nav class="breadcrumb small" aria-label="Breadcrumb">
        <a href={hrefOf("keys")}>API keys</a>
        <span aria-hidden="true">/</span>
        <code>{id}</code>
      </nav>
      <PageHeader title={`Limits of “${key.data?.name ?? id}”`} />
      <p>The limits of its plan, of the account and of the keys that created it apply as well.</p>
      <LimitEditor
        limits={limits}
        ownerOf={() => "This key"}
        isOwn={() => true}
        isReadOnly={key.data?.state !== "active"}
        models={models}
        set={(limit) => replace((present) => [...present.filter((one) => !isSame(one, limit)), limit])}
        remove={(limit) => replace((present) => present.filter((one) => !isSame(one, limit)))}
        actionOf={(action) => <Action {...action} viewer={viewer} method="updateKey" apiKey={key.data} />}
        Form={PlainForm}
      />
    </>
  );
}

type LimitProperties = Parameters<Parameters<typeof LimitEditor>[0]["set"]>[0] | ApiKey["limits"][number];

/** An owner has one limit of each kind. */
function isSame(one: LimitProperties, other: LimitProperties): boolean {
  return limitText(one) === limitText(other) && one.model === other.model && one.per === other.per;
}

async function keyOf({ keyService }: Viewer, keyId: string, signal?: AbortSignal): Promise<ApiKey | undefined> {
  return (await keyService.getKey({ keyId }, signal ? { signal } : {})).apiKey;
}

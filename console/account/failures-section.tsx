import { failureFilterOf } from "../shared/failure-filters.tsx";
import { FailureList } from "../shared/failure-list.tsx";
import { PageHeader } from "../shared/frame.tsx";
import { hrefOf } from "../shared/use-route.ts";
import type { Viewer } from "./viewer.ts";

type FailuresSectionProps = { readonly viewer: Viewer; readonly params: URLSearchParams };

/** The calls that were refused or failed, with their reasons. */
export function FailuresSection({ viewer, params }: FailuresSectionProps) {
  const source = {
    id: viewer.id,
    list: viewer.failureService.listFailures,
    count: viewer.failureService.countFailures,
    section: "failures",
    href: hrefOf("failures"),
    choicesOf: async () => {
      const [models, keys] = await Promise.all([viewer.modelIds(), viewer.keyNames()]);
      return { models, keys };
    },
    keyHref: () => hrefOf("keys"),
  };
  return (
    <>
      <PageHeader title="Failures" />
      <FailureList source={source} filter={failureFilterOf(params)} />
    </>
  );
}

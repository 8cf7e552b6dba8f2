import { hrefOf } from "../shared/use-route.ts";
import { Limits } from "./limits.tsx";

/** The limits that each key of a plan has. */
export function PlanPage({ name }: { readonly name: string }) {
  return (
    <>
      <nav class="breadcrumb small" aria-label="Breadcrumb">
        <a href={hrefOf("plans")}>Plans</a>
        <span aria-hidden="true">/</span>
        <span>{name}</span>
      </nav>
      <div class="page-header">
        <h1 class="wrap">Limits of the plan “{name}”</h1>
      </div>
      <p class="muted">Each key of the plan has these limits for itself.</p>
      <Limits owner={{ case: "plan", value: name }} />
    </>
  );
}

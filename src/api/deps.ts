import type { NewKey } from "../domain/api-key.ts";
import type { Ids } from "../domain/ids.ts";
import type { Lane } from "../domain/lane.ts";
import type { Catalog } from "../models/catalog.ts";
import type { Cells } from "../store/driver/cells.ts";
import type { OperatorAction } from "../store/operator-log.ts";
import type { DecodeTokens } from "./token-texts.ts";

/** The dependencies of services. Ids and randomness are injected, so that tests can control them. */
export type Deps = {
  readonly database: Cells;
  readonly catalog: Catalog;
  readonly ids: Ids;
  readonly generateKey: (lane: Lane) => NewKey;
  readonly generateOperatorToken: () => string;
  /** Called when a refused change of an operator could not be logged. */
  readonly onUnlogged: (action: OperatorAction, outcome: string, error: unknown) => void;
  /** Called after every complete audit. */
  readonly onAudit: (findings: number) => void;
  readonly decodeTokens: DecodeTokens;
  /** Names the provider in exports. */
  readonly productName: string;
  /** Where customers add credit. */
  readonly topUpUrl: string | undefined;
};

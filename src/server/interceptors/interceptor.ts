import type { Message } from "@bufbuild/protobuf";
import type { BodyShare } from "../../codec/body-budget.ts";
import type { Admitted, Call } from "../call.ts";

export type Serve<Stage extends Call = Call> = (call: Stage) => Promise<void>;

/** A stage of the chain: the call that it needs, and the call that it gives to the next stage. */
export type Interceptor<Needs extends Call = Call, Gives extends Needs = Needs> = (next: Serve<Gives>) => Serve<Needs>;

/** Any stage of a list. The type of a list cannot express that neighbours fit. */
export type AnyInterceptor = (next: never) => Serve<never>;

/** A call after its authentication. */
export type AdmittedCall = Call & { admitted: Admitted };

/** A call whose request is read. */
export type ReadCall = AdmittedCall & { message: Message; share: BodyShare };

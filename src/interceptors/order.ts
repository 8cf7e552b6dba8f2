import type { Interceptor } from "@connectrpc/connect";
import { takeDecoded } from "./decoded.ts";
import { translateErrors } from "./translate-errors.ts";
import { validate } from "./validate.ts";

/** What every RPC passes between the gate and its service, outermost first. */
export const interceptors: Interceptor[] = [translateErrors, takeDecoded, validate];

/** The listeners. They load most of the code, so they are imported while the database starts. */

export { createComponents } from "./components.ts";
export { registerHoldGauges } from "./hold-gauges.ts";
export { createOperatorServer } from "./operator-server.ts";
export { createPublicServer } from "./public-server.ts";
export { createWaitingServers } from "./waiting-server.ts";

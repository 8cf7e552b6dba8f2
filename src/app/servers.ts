/** All that serves calls, which is most of the code: loaded while the database starts. */
export { createOperatorServer } from "./operator-server.ts";
export { createParts } from "./parts.ts";
export { createPublicServer } from "./public-server.ts";

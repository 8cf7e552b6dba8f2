/** The listeners. They load most of the code, so they are imported while the database starts. */
export { createOperatorServer } from "./operator-server.ts";
export { createComponents } from "./components.ts";
export { createPublicServer } from "./public-server.ts";

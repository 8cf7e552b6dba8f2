/** The settings that an operator changes when a listener cannot be opened. */
export type ListenSettings = {
  readonly host: "VX_HOST" | "VX_ADMIN_HOST";
  readonly port: "PORT" | "VX_ADMIN_PORT";
};

/** Why a listener cannot be opened: the setting, its error and the remedy. */
export function listenProblem(error: unknown, host: string, settings: ListenSettings): string {
  const { code, message, port } = error as NodeJS.ErrnoException & { port?: number };
  switch (code) {
    case "EADDRINUSE":
      return `${settings.port}: port ${port} on ${host} is in use by another program; stop it, or set ${settings.port} to a free port`;
    case "EACCES":
      return `${settings.port}: this user may not listen on port ${port}; set ${settings.port} to 1024 or more`;
    case "EADDRNOTAVAIL":
      return `${settings.host}: ${host} is not an address of this machine; 127.0.0.1 and 0.0.0.0 always are`;
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `${settings.host}: the host name ${JSON.stringify(host)} has no address; 127.0.0.1 and 0.0.0.0 always work`;
    default:
      return `${settings.host}, ${settings.port}: ${message}`;
  }
}

/** Whether the host of a listener can never be used on this machine, so that its setting is invalid. */
export function isInvalidHost(error: unknown): boolean {
  return ["EADDRNOTAVAIL", "ENOTFOUND"].includes((error as NodeJS.ErrnoException).code ?? "");
}

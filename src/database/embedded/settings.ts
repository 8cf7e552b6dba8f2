/**
 * PostgreSQL accepts connections only over the socket, which only the server user and root can reach. The
 * password blocks other programs of the server user.
 */
const hostBasedAuthentication = "# Written by vx at every start.\nlocal all all scram-sha-256\n";

export const INCLUDE_SETTINGS = "include 'vx.conf'\n";

const USUAL_CONNECTIONS = 100;

type SettingsInput = {
  clusterName: string;
  socketDir: string;
  logDir: string;
  maxConnections?: number | undefined;
};

/** The files that are rewritten at every start. */
export function startFiles(input: SettingsInput): Readonly<Record<string, string>> {
  return { "vx.conf": settingsText(input), "pg_hba.conf": hostBasedAuthentication };
}

/** All configuration files of a cluster. PostgreSQL reads no setting from anywhere else. */
export function configuration(input: SettingsInput): Readonly<Record<string, string>> {
  return {
    ...startFiles(input),
    "postgresql.conf": INCLUDE_SETTINGS,
    "postgresql.auto.conf": "# ALTER SYSTEM writes this file.\n",
    "pg_ident.conf": "# Not used.\n",
  };
}

/**
 * `vx.conf` is rewritten at every start, so that a new version can change settings. ALTER SYSTEM overrides
 * it.
 */
function settingsText({ clusterName, socketDir, logDir, maxConnections = USUAL_CONNECTIONS }: SettingsInput): string {
  const settings: Record<string, string> = {
    cluster_name: clusterName,
    listen_addresses: "",
    port: "5432",
    // The value is a list: the inner quotes protect a comma or a space in the path.
    unix_socket_directories: `"${socketDir.replaceAll('"', '""')}"`,
    unix_socket_permissions: "0700",
    max_connections: String(maxConnections),
    shared_buffers: "128MB",
    // Online backups need more than crash recovery does. There is no standby.
    wal_level: "replica",
    max_wal_senders: "0",
    max_wal_size: "1GB",
    checkpoint_timeout: "15min",
    // Seven files, one per weekday; each is emptied when its day begins. trimLogs limits their size.
    logging_collector: "on",
    log_directory: logDir,
    log_filename: "postgresql-%a.log",
    log_rotation_age: "1d",
    log_rotation_size: "0",
    log_truncate_on_rotation: "on",
    log_checkpoints: "off",
    log_line_prefix: "%m [%p] ",
    // Keeps callers' data out of the log.
    log_parameter_max_length: "0",
    log_parameter_max_length_on_error: "0",
    timezone: "UTC",
    log_timezone: "UTC",
    lc_messages: "C",
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value.replaceAll("'", "''")}'`);
  return `# Written by vx at every start. Your own settings: ALTER SYSTEM.\n${lines.join("\n")}\n`;
}

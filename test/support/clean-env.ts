/** An environment for a program: the settings of the person or CI that runs the tests do not apply to it. */
export function cleanEnv(env: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(([name]) => !/^(VX_|OTEL_|PORT$|DATABASE_URL$|NODE_)/.test(name));
  return { ...Object.fromEntries(own), ...env };
}

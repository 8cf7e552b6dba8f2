import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import Provider from "oidc-provider";

export const CLIENT = { id: "vx", secret: "client-secret-of-the-tests" };

type Claims = Record<string, unknown>;

/** Who signs in next, and how the provider misbehaves. */
export type Behaviour = {
  subject: string;
  email: string | undefined;
  emailVerified: unknown;
  /** Changes the claims of the ID token, which is signed again. */
  change: (claims: Claims) => Claims;
  /** Signs with a key that the provider does not publish. */
  forge: boolean;
  /** In place of the provider: a status, with a body of some size. */
  down: { readonly status: number; readonly bytes: number } | undefined;
};

/** A real OpenID Connect provider on the loopback address, whose users sign in at once. */
export class IdentityProvider {
  readonly #server: Server;
  readonly #keys = [newKey(), newKey()] as const;
  #provider: Provider | undefined;
  readonly behaviour: Behaviour = behaving();
  /** Paths of the requests that arrived. */
  readonly requests: string[] = [];

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(): Promise<IdentityProvider> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new IdentityProvider(server);
  }

  get issuer(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Starts to answer, for the client with this address. */
  register(redirectUri: string): void {
    const provider = new Provider(this.issuer, this.#configuration(redirectUri));
    provider.use(async (context, next) => {
      await next();
      const body = context.body as { id_token?: string } | undefined;
      if (context.oidc?.route === "token" && body?.id_token) body.id_token = this.#resign(body.id_token);
    });
    this.#provider = provider;
    const serve = provider.callback();
    this.#server.on("request", (request, response) => {
      const { down } = this.behaviour;
      const path = new URL(request.url ?? "", this.issuer).pathname;
      this.requests.push(path);
      if (down) response.writeHead(down.status).end("x".repeat(down.bytes));
      else if (path.startsWith("/interaction/"))
        void provider.interactionFinished(request, response, { login: { accountId: this.behaviour.subject } });
      else void serve(request, response);
    });
  }

  reset(): void {
    Object.assign(this.behaviour, behaving());
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #configuration(redirectUri: string) {
    const [key] = this.#keys;
    return {
      clients: [
        {
          client_id: CLIENT.id,
          client_secret: CLIENT.secret,
          redirect_uris: [redirectUri],
          id_token_signed_response_alg: "RS256",
        },
      ],
      jwks: { keys: [{ ...key.export({ format: "jwk" }), use: "sig", alg: "RS256", kid: "1" }] },
      cookies: { keys: ["key-of-cookies"] },
      claims: { openid: ["sub"], email: ["email", "email_verified"] },
      conformIdTokenClaims: false,
      pkce: { required: () => true },
      features: { devInteractions: { enabled: false } },
      interactions: { url: (_: unknown, interaction: { uid: string }) => `/interaction/${interaction.uid}` },
      loadExistingGrant: async (context: { oidc: { client: { clientId: string }; session: { accountId: string } } }) => {
        const { client, session } = context.oidc;
        const { Grant } = this.#provider as Provider;
        const grant = new Grant({ clientId: client.clientId, accountId: session.accountId });
        grant.addOIDCScope("openid email");
        await grant.save();
        return grant;
      },
      findAccount: (_: unknown, sub: string) => ({
        accountId: sub,
        claims: () => {
          const { email, emailVerified } = this.behaviour;
          return { sub, email, email_verified: emailVerified };
        },
      }),
      ttl: { AccessToken: 60, AuthorizationCode: 60, IdToken: 60, Interaction: 60, Session: 60, Grant: 60 },
    };
  }

  #resign(token: string): string {
    const { change, forge } = this.behaviour;
    const [head = "", body = ""] = token.split(".");
    const claims = change(JSON.parse(Buffer.from(body, "base64url").toString()));
    const signed = `${head}.${Buffer.from(JSON.stringify(claims)).toString("base64url")}`;
    const key: KeyObject = this.#keys[forge ? 1 : 0];
    return `${signed}.${sign("sha256", Buffer.from(signed), key).toString("base64url")}`;
  }
}

function behaving(): Behaviour {
  return {
    subject: "user-1",
    email: "ada@example.com",
    emailVerified: true,
    change: (claims) => claims,
    forge: false,
    down: undefined,
  };
}

function newKey(): KeyObject {
  return generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
}

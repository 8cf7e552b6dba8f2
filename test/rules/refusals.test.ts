import { create, createFileRegistry, type DescService, type MessageInitShape, setExtension } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, MethodOptionsSchema } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { Health } from "../../gen/health/v1/health_pb.js";
import { Access, MemberRole, type MethodPolicySchema, policy } from "../../gen/vx/options/v1/options_pb.js";
import { MeService } from "../../gen/vx/v1/me_pb.js";
import { withDeps } from "../../src/api/define-service.ts";
import { meService } from "../../src/keys/me-service.ts";
import { memberPoliciesOf, PolicyError, policiesOf } from "../../src/rules/policy.ts";
import { rpcMethods } from "../../src/server/wire/rpc.ts";

type Declared = MessageInitShape<typeof MethodPolicySchema>;

/** test.v1.TestService with one method, which declares the policy. */
function serviceWith(declared: Declared | undefined): DescService {
  const options = create(MethodOptionsSchema);
  if (declared) setExtension(options, policy, declared as never);
  const file = create(FileDescriptorProtoSchema, {
    name: "test/v1/test.proto",
    package: "test.v1",
    syntax: "proto3",
    messageType: [{ name: "Empty" }],
    service: [
      { name: "TestService", method: [{ name: "Do", inputType: ".test.v1.Empty", outputType: ".test.v1.Empty", options }] },
    ],
  });
  const service = createFileRegistry(file, () => undefined).getService("test.v1.TestService");
  if (!service) throw new Error("the descriptor has no service");
  return service;
}

describe("the start fails for a method that", () => {
  test.each<{ what: string; declared: Declared | undefined; text: string }>([
    { what: "declares nothing", declared: undefined, text: "declares no policy" },
    { what: "declares an empty policy", declared: {}, text: "declares no access" },
    { what: "names only a scope", declared: { scope: "read" }, text: "declares no access" },
    {
      what: "needs an unknown scope",
      declared: { access: Access.DEVELOPER, scope: "admin" },
      text: 'needs the unknown scope "admin"',
    },
    {
      what: "is metered but not rate limited",
      declared: { access: Access.DEVELOPER, scope: "generate", metered: true },
      text: "is metered but not rate limited",
    },
  ])("$what", ({ declared, text }) => {
    expect(() => policiesOf([serviceWith(declared)])).toThrow(PolicyError);
    expect(() => policiesOf([serviceWith(declared)])).toThrow(`test.v1.TestService.Do ${text}`);
  });

  const owner = { role: MemberRole.OWNER };
  test.each<{ what: string; declared: Declared; text: string }>([
    { what: "names no role", declared: { member: { logged: true } }, text: "declares no role of members" },
    {
      what: "is metered",
      declared: { access: Access.DEVELOPER, scope: "generate", rateLimited: true, metered: true, member: owner },
      text: "is metered, and sessions may call it",
    },
  ])("sessions call and $what", ({ declared, text }) => {
    expect(() => memberPoliciesOf([serviceWith(declared)])).toThrow(PolicyError);
    expect(() => memberPoliciesOf([serviceWith(declared)])).toThrow(`test.v1.TestService.Do ${text}`);
  });

  test("only sessions call, and is served to others", () => {
    expect(() => policiesOf([serviceWith({ member: owner })])).toThrow("test.v1.TestService.Do declares no access");
  });

  test("belongs to a standard service, such as health", () => {
    expect(() => policiesOf([MeService, Health])).toThrow(PolicyError);
  });

  test("is served without a policy", () => {
    const serve = () => rpcMethods([withDeps(meService, {} as never)], { policies: new Map(), maxBodyBytes: 1_024 });
    expect(serve).toThrow(PolicyError);
    expect(serve).toThrow("vx.v1.MeService/GetMe is served but has no policy");
  });
});

test("a policy has the declared values", () => {
  const service = serviceWith({
    access: Access.DEVELOPER,
    scope: "read",
    rateLimited: true,
    metered: true,
    whileSuspended: true,
  });
  expect([...policiesOf([service]).values()]).toEqual([
    { access: "developer", scope: "read", rateLimited: true, metered: true, whileSuspended: true, logged: false },
  ]);
  expect(memberPoliciesOf([service]).size).toBe(0);
});

test("keys and members have policies of their own for one method", () => {
  const member = { role: MemberRole.BILLING, logged: true };
  const service = serviceWith({ access: Access.DEVELOPER, scope: "billing", rateLimited: true, whileSuspended: true, member });
  const forMembers = { access: "member", memberRole: "billing", whileSuspended: false, logged: true };
  expect([...memberPoliciesOf([service]).values()]).toEqual([{ ...forMembers, rateLimited: false, metered: false }]);
  expect([...policiesOf([service]).values()]).toMatchObject([{ access: "developer", whileSuspended: true, logged: false }]);
});

test("a method that generates is not for suspended accounts", () => {
  const service = serviceWith({ access: Access.DEVELOPER, scope: "generate", whileSuspended: true });
  expect(() => policiesOf([service])).toThrow(PolicyError);
});

import { expect, test } from "vitest";
import { databaseUrlProblem, endpointsOf } from "../../src/database/driver/endpoints.ts";

function read(url: string) {
  return endpointsOf({ kind: "url", url }).map(({ name, login, driverUrl }) => ({ name, ...login, driverUrl }));
}

test.each([
  ["postgres://a:b@db.example:6543/vx", [{ name: "db.example:6543", user: "a", password: "b", database: "vx" }]],
  ["postgresql://db.example", [{ name: "db.example:5432" }]],
  ["postgres:///vx", [{ name: "localhost:5432", database: "vx" }]],
  ["postgres://a%40b:p%2Fq%3A@h/d%20e", [{ user: "a@b", password: "p/q:", database: "d e" }]],
  ["postgres://a:b@c@h/d", [{ name: "h:5432", user: "a", password: "b@c" }]],
  ["postgres://[::1]:6543/vx", [{ name: "::1:6543" }]],
  ["postgres://one,two:6543,[::1]/vx", [{ name: "one:5432" }, { name: "two:6543" }, { name: "::1:5432" }]],
  ["postgres:///vx?host=/run/a b&user=u&password=p", [{ name: "/run/a b/.s.PGSQL.5432", user: "u", password: "p" }]],
  ["postgres:///vx?host=one,two&port=1,2", [{ name: "one:1" }, { name: "two:2" }]],
  ["postgres:///?host=one,two&port=7&dbname=vx", [{ name: "one:7", database: "vx" }, { name: "two:7" }]],
])("%s is parsed", (url, expected) => {
  expect(databaseUrlProblem(url)).toBeUndefined();
  const endpoints = read(url);
  expect(endpoints).toHaveLength(expected.length);
  expect(endpoints).toMatchObject(expected);
});

test("parameters that the driver would send to the server are removed; others are kept", () => {
  const [endpoint] = read("postgres://h/d?host=k&user=u&target_session_attrs=any&sslmode=require&search_path=x");
  expect(endpoint?.driverUrl).toBe("postgres://localhost/?sslmode=require&search_path=x");
});

test.each([
  ["postgres://u:p#q@h/d", /^is not a valid URL .*%23/],
  ["postgres://h:99999/d", /^has no valid port: 99999/],
  ["postgres://h:a/d", /^has a host and port that cannot be read: h:a/],
  ["postgres://a,b:0/d", /^has no valid port: 0/],
  ["postgres://h/d?port=x", /^has no valid port: x/],
  ["postgres://u:100%ZZ@h/d", /^has a % that is not followed/],
  ["postgres://h/%ff", /^has a % that is not followed/],
  ["postgres://h/d?target_session_attrs=standby", /target_session_attrs=standby, but the server needs/],
  ["postgres://h/d?target_session_attrs=prefer-standby", /needs a database it can write to/],
])("%s is rejected", (url, problem) => {
  expect(databaseUrlProblem(url)).toMatch(problem);
});

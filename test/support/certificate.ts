import { createSign, generateKeyPairSync } from "node:crypto";

/** Creates a self-signed certificate for localhost, so that the repository contains no private key. */
export function createCertificate(): { cert: string; key: string } {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const algorithm = sequence(objectId("2a8648ce3d040302"));
  const name = sequence(set(sequence(objectId("550403"), der(0x0c, Buffer.from("localhost")))));
  const dates = sequence(utcTime(new Date(Date.now() - 86_400_000)), utcTime(new Date(Date.now() + 86_400_000)));
  const altName = sequence(der(0x82, Buffer.from("localhost")), der(0x87, Buffer.from([127, 0, 0, 1])));
  const extensions = sequence(sequence(objectId("551d11"), der(0x04, altName)));
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.from([1])),
    algorithm,
    name,
    dates,
    name,
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, extensions),
  );
  const signature = createSign("sha256").update(body).sign(privateKey);
  const certificate = sequence(body, algorithm, der(0x03, Buffer.concat([Buffer.from([0]), signature])));
  const lines = certificate.toString("base64").replace(/(.{64})/g, "$1\n");
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  };
}

function der(tag: number, value: Buffer): Buffer {
  const { length } = value;
  const head = length < 128 ? [tag, length] : length < 256 ? [tag, 0x81, length] : [tag, 0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from(head), value]);
}

function sequence(...parts: Buffer[]): Buffer {
  return der(0x30, Buffer.concat(parts));
}

function set(...parts: Buffer[]): Buffer {
  return der(0x31, Buffer.concat(parts));
}

function objectId(hex: string): Buffer {
  return der(0x06, Buffer.from(hex, "hex"));
}

function utcTime(date: Date): Buffer {
  return der(0x17, Buffer.from(`${date.toISOString().replace(/[-:T]/g, "").slice(2, 14)}Z`));
}

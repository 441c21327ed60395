// Clients of schema registries for Node, each asked for one feature: node registry.js FEATURE URL SUBJECT
import assert from "node:assert";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { SchemaRegistry, SchemaType } = require("@kafkajs/confluent-schema-registry");
const confluent = require("@confluentinc/schemaregistry");
const [feature, url, subject] = process.argv.slice(2);

const avro = JSON.stringify({ type: "record", name: "R", namespace: "n", fields: [{ name: "a", type: "string" }] });
const json = JSON.stringify({ type: "object", properties: { a: { type: "string" } } });
const proto = 'syntax = "proto3"; message M { string a = 1; }';
const content = { a: "x" };

const kafkajs = () => new SchemaRegistry({ host: url });
const client = () => new confluent.SchemaRegistryClient({ baseURLs: [url], cacheCapacity: 100 });

async function throughKafkajs(type, schema) {
  const registry = kafkajs();
  const { id } = await registry.register({ type, schema }, { subject });
  assert.equal((await registry.decode(await registry.encode(id, content))).a, "x");
  assert.equal(await registry.getLatestSchemaId(subject), id);
}

async function throughConfluent(schemaType, schema, Serializer, Deserializer) {
  const registry = client();
  const topic = subject;
  await registry.register(`${topic}-value`, { schemaType, schema });
  const write = new Serializer(registry, confluent.SerdeType.VALUE, { useLatestVersion: true });
  const read = new Deserializer(registry, confluent.SerdeType.VALUE, {});
  assert.equal((await read.deserialize(topic, await write.serialize(topic, content))).a, "x");
}

const FEATURES = {
  "kafkajs-avro": () => throughKafkajs(SchemaType.AVRO, avro),
  "kafkajs-json": () => throughKafkajs(SchemaType.JSON, json),
  "kafkajs-protobuf": () => throughKafkajs(SchemaType.PROTOBUF, proto),
  "confluent-avro": () => throughConfluent("AVRO", avro, confluent.AvroSerializer, confluent.AvroDeserializer),
  "confluent-json": () => throughConfluent("JSON", json, confluent.JsonSerializer, confluent.JsonDeserializer),
  "confluent-admin": async () => {
    const registry = client();
    const id = await registry.register(subject, { schemaType: "AVRO", schema: avro });
    assert.equal((await registry.getBySubjectAndId(subject, id)).schema, avro);
    assert.deepEqual(await registry.getAllVersions(subject), [1]);
    assert.ok(await registry.testSubjectCompatibility(subject, { schemaType: "AVRO", schema: avro }));
    await registry.updateConfig(subject, { compatibilityLevel: "FULL" });
    assert.equal((await registry.getConfig(subject)).compatibilityLevel, "FULL");
    const { guid } = await registry.getLatestSchemaMetadata(subject);
    assert.equal((await registry.getByGuid(guid)).schema, avro);
    assert.deepEqual(await registry.deleteSubject(subject), [1]);
    assert.ok(!(await registry.getAllSubjects()).includes(subject));
  },
};

FEATURES[feature]().then(
  () => process.exit(0),
  (error) => {
    console.error(String(error.message || error));
    process.exit(1);
  },
);

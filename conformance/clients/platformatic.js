// @platformatic/kafka: `node platformatic.js FEATURE BOOTSTRAP TOPIC`; ends with 0 if the feature works.
import assert from 'node:assert/strict'
import { Admin, Consumer, MessagesStreamModes, Producer, stringDeserializers, stringSerializers } from '@platformatic/kafka'

const [feature, bootstrap, topic] = process.argv.slice(2)
const shared = { clientId: 'conformance', bootstrapBrokers: [bootstrap] }
const VALUES = ['a', 'b', 'c']
// Not the same again: those would also come to a group that forgot where it stood.
const LATER = ['d', 'e', 'f']

async function produce(settings = {}, values = VALUES) {
  const producer = new Producer({ ...shared, serializers: stringSerializers, ...settings })
  await producer.send({ messages: values.map(value => ({ topic, key: 'k', value, headers: { h: '1' } })) })
  await producer.close()
}

async function consume(count, mode = MessagesStreamModes.EARLIEST) {
  const consumer = new Consumer({ ...shared, groupId: topic, deserializers: stringDeserializers })
  const stream = await consumer.consume({ topics: [topic], mode, autocommit: false })
  const found = []
  for await (const message of stream) {
    found.push(message.value)
    await message.commit()
    if (found.length === count) break
  }
  await stream.close()
  await consumer.close()
  return found
}

const FEATURES = {
  'group': async () => {
    await produce()
    assert.deepEqual(await consume(3), VALUES)
    await produce({}, LATER)
    assert.deepEqual(await consume(3, MessagesStreamModes.COMMITTED), LATER)
  },
  'codecs': async () => {
    for (const compression of ['gzip', 'snappy', 'lz4']) await produce({ compression })
    assert.deepEqual(await consume(9), [...VALUES, ...VALUES, ...VALUES])
  },
  'idempotence': async () => {
    await produce({ idempotent: true })
    await produce({ idempotent: true })
    assert.deepEqual(await consume(6), [...VALUES, ...VALUES])
  },
  'topics': async admin => {
    assert.ok((await admin.listTopics()).includes(topic))
    await admin.deleteTopics({ topics: [topic] })
    assert.ok(!(await admin.listTopics()).includes(topic))
  }
}

const admin = new Admin(shared)
await admin.createTopics({ topics: [topic], partitions: 1, replicas: 1 })
await FEATURES[feature](admin)
await admin.close()
process.exit(0)

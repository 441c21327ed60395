// @platformatic/kafka: `node platformatic.js FEATURE BOOTSTRAP TOPIC`; ends with 0 if the feature works.
import assert from 'node:assert/strict'
import {
  Admin, Consumer, FetchIsolationLevels, ListOffsetTimestamps, MessagesStreamModes, Producer, stringDeserializers,
  stringSerializers
} from '@platformatic/kafka'

const [feature, bootstrap, topic] = process.argv.slice(2)
const shared = { clientId: 'conformance', bootstrapBrokers: [bootstrap] }
const VALUES = ['a', 'b', 'c']
// Not the same again: those would also come to a group that forgot where it stood.
const LATER = ['d', 'e', 'f']
const CODECS = ['gzip', 'snappy', 'lz4', 'zstd']
const FIRST_MS = 1_700_000_000_000n

async function produce(settings = {}, values = VALUES) {
  const producer = new Producer({ ...shared, serializers: stringSerializers, ...settings })
  await producer.send({ messages: values.map(value => ({ topic, key: 'k', value, headers: { h: '1' } })) })
  await producer.close()
}

async function consumeMessages(count, mode = MessagesStreamModes.EARLIEST, settings = {}) {
  const consumer = new Consumer({ ...shared, groupId: topic, deserializers: stringDeserializers, ...settings })
  const stream = await consumer.consume({ topics: [topic], mode, autocommit: false })
  const found = []
  for await (const message of stream) {
    found.push(message)
    await message.commit()
    if (found.length === count) break
  }
  await stream.close()
  await consumer.close()
  return found
}

async function consume(...how) {
  return (await consumeMessages(...how)).map(message => message.value)
}

async function group(settings = {}) {
  await produce()
  assert.deepEqual(await consume(3, MessagesStreamModes.EARLIEST, settings), VALUES)
  await produce({}, LATER)
  assert.deepEqual(await consume(3, MessagesStreamModes.COMMITTED, settings), LATER)
}

const FEATURES = {
  'round-trip': async () => {
    const producer = new Producer({ ...shared, serializers: stringSerializers })
    const headers = { h: '1' }
    await producer.send({ messages: [{ topic, key: 'k', value: 'v', headers, timestamp: FIRST_MS }, { topic, value: 'w' }] })
    await producer.close()
    const [first, second] = await consumeMessages(2)
    assert.deepEqual([first.key, first.value, first.timestamp], ['k', 'v', FIRST_MS])
    assert.deepEqual([...first.headers], [['h', '1']])
    assert.deepEqual([second.key ?? null, second.value, second.headers.size], [null, 'w', 0])
  },
  'group': async () => await group(),
  'next-group': async () => await group({ groupProtocol: 'consumer' }),
  'codecs': async () => {
    for (const compression of CODECS) await produce({ compression })
    assert.deepEqual(await consume(12), CODECS.flatMap(() => VALUES))
  },
  'transactions': async () => {
    const producer = new Producer({ ...shared, serializers: stringSerializers, idempotent: true, transactionalId: topic })
    for (const [value, isKept] of [['lost', false], ['kept', true]]) {
      const transaction = await producer.beginTransaction()
      await transaction.send({ messages: [{ topic, value }] })
      await (isKept ? transaction.commit() : transaction.abort())
    }
    await producer.close()
    const isolationLevel = FetchIsolationLevels.READ_COMMITTED
    assert.deepEqual(await consume(1, MessagesStreamModes.EARLIEST, { isolationLevel }), ['kept'])
  },
  'offsets': async admin => {
    await produce()
    const offsetOf = async timestamp => {
      const [found] = await admin.listOffsets({ topics: [{ name: topic, partitions: [{ partitionIndex: 0, timestamp }] }] })
      return found.partitions[0].offset
    }
    assert.equal(await offsetOf(ListOffsetTimestamps.EARLIEST), 0n)
    assert.equal(await offsetOf(ListOffsetTimestamps.LATEST), 3n)
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

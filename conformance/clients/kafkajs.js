// kafkajs: `node kafkajs.js FEATURE BOOTSTRAP TOPIC`; ends with 0 if the feature works.
import assert from 'node:assert/strict'
import zlib from 'node:zlib'
import kafkajs from 'kafkajs'
import snappy from 'kafkajs-snappy'
import * as lz4 from 'lz4-napi'

const [feature, bootstrap, topic] = process.argv.slice(2)
const kafka = new kafkajs.Kafka({ clientId: 'conformance', brokers: [bootstrap], logLevel: kafkajs.logLevel.ERROR })
const VALUES = ['a', 'b', 'c']
// Not the same again: those would also come to a group that forgot where it stood.
const LATER = ['d', 'e', 'f']
const SECONDS_MAX = 30

// It brings gzip, and takes what it is given for the rest. What its authors name for lz4 (kafkajs-lz4) and zstd
// (@kafkajs/zstd) is native code that a Node of today does not build or load; that Node has zstd itself.
const { CompressionTypes } = kafkajs
kafkajs.CompressionCodecs[CompressionTypes.Snappy] = snappy
kafkajs.CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: async encoder => lz4.compressFrameSync(encoder.buffer),
  decompress: async buffer => lz4.decompressFrameSync(buffer)
})
kafkajs.CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async encoder => zlib.zstdCompressSync(encoder.buffer),
  decompress: async buffer => zlib.zstdDecompressSync(buffer)
})

async function createTopic() {
  const admin = kafka.admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic, numPartitions: 1 }], waitForLeaders: true })
  return admin
}

async function produce(settings = {}, sending = {}, values = VALUES) {
  const producer = kafka.producer(settings)
  await producer.connect()
  await producer.send({ topic, messages: values.map(value => ({ key: 'k', value, headers: { h: '1' } })), ...sending })
  await producer.disconnect()
}

async function consume(count) {
  return (await consumeMessages(count)).map(message => message.value.toString())
}

async function consumeMessages(count, groupId = topic) {
  const consumer = kafka.consumer({ groupId })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  const found = []
  await new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error(`only ${found.length} of ${count} records`)), SECONDS_MAX * 1000).unref()
    consumer.run({
      eachMessage: async ({ message }) => {
        found.push(message)
        if (found.length === count) resolve()
      }
    })
  })
  await consumer.disconnect()
  return found
}

const FEATURES = {
  'round-trip': async () => {
    const messages = [
      { key: 'k', value: 'v', headers: { h: '1' }, timestamp: '1700000000000' },
      { key: null, value: null, headers: {}, timestamp: '1700000001000' }
    ]
    await produce({}, { messages })
    const text = buffer => buffer?.toString() ?? null
    const found = (await consumeMessages(2)).map(({ key, value, headers, timestamp }) => ({
      key: text(key),
      value: text(value),
      headers: Object.fromEntries(Object.entries(headers).map(([name, data]) => [name, text(data)])),
      timestamp
    }))
    assert.deepEqual(found, messages)
  },
  'group': async () => {
    await produce()
    assert.deepEqual(await consume(3), VALUES)
    await produce({}, {}, LATER)
    assert.deepEqual(await consume(3), LATER)
  },
  'codecs': async () => {
    const codecs = [CompressionTypes.GZIP, CompressionTypes.Snappy, CompressionTypes.LZ4, CompressionTypes.ZSTD]
    for (const compression of codecs) await produce({}, { compression })
    assert.deepEqual(await consume(12), codecs.flatMap(() => VALUES))
  },
  'idempotence': async () => {
    await produce({ idempotent: true })
    await produce({ idempotent: true })
    assert.deepEqual(await consume(6), [...VALUES, ...VALUES])
  },
  'transactions': async () => {
    const producer = kafka.producer({ transactionalId: topic, idempotent: true, maxInFlightRequests: 1 })
    await producer.connect()
    for (const [value, isKept] of [['lost', false], ['kept', true]]) {
      const transaction = await producer.transaction()
      await transaction.send({ topic, messages: [{ value }] })
      await (isKept ? transaction.commit() : transaction.abort())
    }
    await producer.disconnect()
    assert.deepEqual(await consume(1), ['kept'])
  },
  'topics': async admin => {
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
    assert.equal(topics[0].partitions.length, 1)
    await admin.createPartitions({ topicPartitions: [{ topic, count: 3 }] })
    await admin.deleteTopics({ topics: [topic] })
  },
  'offsets': async admin => {
    await produce()
    const [found] = await admin.fetchTopicOffsets(topic)
    assert.equal(found.high, '3')
    assert.equal(found.low, '0')
  }
}

const admin = await createTopic()
try {
  await FEATURES[feature](admin)
} finally {
  await admin.disconnect()
}
process.exit(0)

// kafkajs: `node kafkajs.js FEATURE BOOTSTRAP TOPIC`; ends with 0 if the feature works.
import assert from 'node:assert/strict'
import kafkajs from 'kafkajs'

const [feature, bootstrap, topic] = process.argv.slice(2)
const kafka = new kafkajs.Kafka({ clientId: 'conformance', brokers: [bootstrap], logLevel: kafkajs.logLevel.ERROR })
const VALUES = ['a', 'b', 'c']
// Not the same again: those would also come to a group that forgot where it stood.
const LATER = ['d', 'e', 'f']
const SECONDS_MAX = 30

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

async function consume(count, groupId = topic) {
  const consumer = kafka.consumer({ groupId })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  const found = []
  await new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error(`only ${found.length} of ${count} records`)), SECONDS_MAX * 1000).unref()
    consumer.run({
      eachMessage: async ({ message }) => {
        found.push(message.value.toString())
        if (found.length === count) resolve()
      }
    })
  })
  await consumer.disconnect()
  return found
}

const FEATURES = {
  'group': async () => {
    await produce()
    assert.deepEqual(await consume(3), VALUES)
    await produce({}, {}, LATER)
    assert.deepEqual(await consume(3), LATER)
  },
  'codecs': async () => {
    await produce({}, { compression: kafkajs.CompressionTypes.GZIP })
    assert.deepEqual(await consume(3), VALUES)
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

// Kafka's own Java client: `java Cell FEATURE BOOTSTRAP TOPIC`; ends with 0 if the feature works.

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public final class Cell {
    private static final long SECONDS_MAX = 30;
    private static final List<String> VALUES = List.of("a", "b", "c");
    // Not the same again: those would also come to a group that forgot where it stood.
    private static final List<String> LATER = List.of("d", "e", "f");
    private static final List<String> CODECS = List.of("gzip", "snappy", "lz4", "zstd");
    private static final long FIRST_MS = 1_700_000_000_000L;

    private final String bootstrap;
    private final String topic;
    private final TopicPartition partition;

    private Cell(String bootstrap, String topic) {
        this.bootstrap = bootstrap;
        this.topic = topic;
        this.partition = new TopicPartition(topic, 0);
    }

    public static void main(String[] arguments) throws Exception {
        var cell = new Cell(arguments[1], arguments[2]);
        try (var admin = Admin.create(Map.of("bootstrap.servers", cell.bootstrap))) {
            admin.createTopics(List.of(new NewTopic(cell.topic, 1, (short) 1))).all().get(SECONDS_MAX, TimeUnit.SECONDS);
            switch (arguments[0]) {
                case "round-trip" -> cell.roundTrip();
                case "codecs" -> cell.codecs();
                case "idempotence" -> cell.idempotence();
                case "offsets" -> cell.offsets(admin);
                case "topics" -> cell.topics(admin);
                case "group" -> cell.group("classic");
                case "next-group" -> cell.group("consumer");
                case "transactions" -> cell.transactions();
                default -> throw new IllegalArgumentException("no " + arguments[0]);
            }
        }
    }

    private KafkaProducer<String, String> producer(String... settings) {
        return new KafkaProducer<>(with(settings), new StringSerializer(), new StringSerializer());
    }

    private KafkaConsumer<String, String> consumer(String... settings) {
        Map<String, Object> chosen = with(settings);
        chosen.put("auto.offset.reset", "earliest");
        chosen.put("enable.auto.commit", "false");
        return new KafkaConsumer<>(chosen, new StringDeserializer(), new StringDeserializer());
    }

    private Map<String, Object> with(String... settings) {
        Map<String, Object> chosen = new HashMap<>(Map.of("bootstrap.servers", bootstrap));
        for (String setting : settings) {
            chosen.put(setting.split("=", 2)[0], setting.split("=", 2)[1]);
        }
        return chosen;
    }

    private void produce(List<String> values, String... settings) throws Exception {
        try (var producer = producer(settings)) {
            for (String value : values) {
                producer.send(new ProducerRecord<>(topic, 0, null, value)).get(SECONDS_MAX, TimeUnit.SECONDS);
            }
        }
    }

    private static List<ConsumerRecord<String, String>> polled(KafkaConsumer<String, String> consumer, int count) {
        List<ConsumerRecord<String, String>> found = new ArrayList<>();
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS_MAX);
        while (found.size() < count && System.nanoTime() < end) {
            consumer.poll(Duration.ofMillis(200)).forEach(found::add);
        }
        return found;
    }

    /** Without a group. */
    private List<ConsumerRecord<String, String>> assigned(int count, String... settings) {
        try (var consumer = consumer(settings)) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            return polled(consumer, count);
        }
    }

    private static List<String> values(List<ConsumerRecord<String, String>> records) {
        return records.stream().map(ConsumerRecord::value).toList();
    }

    private static void expect(Object wanted, Object found) {
        if (!wanted.equals(found)) {
            System.err.println("expected " + wanted + ", got " + found);
            System.exit(1);
        }
    }

    private static void until(Callable<Boolean> isSo) throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS_MAX);
        while (!isSo.call()) {
            expect(true, System.nanoTime() < end);
            Thread.sleep(100);
        }
    }

    private static String shown(String key, String value, long timestamp, Iterable<?> headers) {
        return key + " " + value + " " + timestamp + " " + headers;
    }

    private void roundTrip() throws Exception {
        List<ProducerRecord<String, String>> sent = List.of(
            new ProducerRecord<>(topic, 0, FIRST_MS, "key", "value"),
            new ProducerRecord<>(topic, 0, FIRST_MS + 1000, null, ""),
            new ProducerRecord<>(topic, 0, FIRST_MS + 2000, "key", (String) null));
        sent.get(0).headers().add("h", bytes("1")).add("h", bytes("2"));
        sent.get(2).headers().add("empty", bytes(""));
        try (var producer = producer()) {
            for (var record : sent) {
                producer.send(record).get(SECONDS_MAX, TimeUnit.SECONDS);
            }
        }
        var found = assigned(3);
        expect(3, found.size());
        for (int index = 0; index < 3; index++) {
            var wanted = sent.get(index);
            var record = found.get(index);
            expect(
                shown(wanted.key(), wanted.value(), wanted.timestamp(), Arrays.asList(wanted.headers().toArray())),
                shown(record.key(), record.value(), record.timestamp(), Arrays.asList(record.headers().toArray())));
        }
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private void codecs() throws Exception {
        List<String> wanted = new ArrayList<>();
        for (String codec : CODECS) {
            produce(VALUES, "compression.type=" + codec);
            wanted.addAll(VALUES);
        }
        expect(wanted, values(assigned(wanted.size())));
    }

    private void idempotence() throws Exception {
        produce(VALUES, "enable.idempotence=true");
        produce(LATER, "enable.idempotence=true");
        expect(List.of("a", "b", "c", "d", "e", "f"), values(assigned(6)));
    }

    private void offsets(Admin admin) throws Exception {
        roundTrip();
        try (var consumer = consumer()) {
            expect(Map.of(partition, 0L), consumer.beginningOffsets(List.of(partition)));
            expect(Map.of(partition, 3L), consumer.endOffsets(List.of(partition)));
            var found = consumer.offsetsForTimes(Map.of(partition, FIRST_MS + 1000)).get(partition);
            expect(1L, found.offset());
        }
        var listed = admin.listOffsets(Map.of(partition, OffsetSpec.maxTimestamp())).partitionResult(partition);
        expect(2L, listed.get(SECONDS_MAX, TimeUnit.SECONDS).offset());
    }

    private void topics(Admin admin) throws Exception {
        admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(3))).all().get(SECONDS_MAX, TimeUnit.SECONDS);
        until(() -> admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size() == 3);
        admin.deleteTopics(List.of(topic)).all().get(SECONDS_MAX, TimeUnit.SECONDS);
        until(() -> !admin.listTopics().names().get().contains(topic));
    }

    private void group(String protocol) throws Exception {
        for (var values : List.of(VALUES, LATER)) {
            produce(values);
            try (var consumer = consumer("group.id=" + topic, "group.protocol=" + protocol)) {
                consumer.subscribe(List.of(topic));
                expect(values, values(polled(consumer, 3)));
                consumer.commitSync();
            }
        }
    }

    private void transactions() throws Exception {
        try (var producer = producer("transactional.id=" + topic)) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, 0, null, "lost")).get(SECONDS_MAX, TimeUnit.SECONDS);
            producer.abortTransaction();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, 0, null, "kept"));
            producer.commitTransaction();
        }
        expect(List.of("kept"), values(assigned(1, "isolation.level=read_committed")));
    }
}

// Kafka's own Java client, driven over standard input and output: one JSON object per line, bytes in base64.
//
//   Probe produce BOOTSTRAP TOPIC [name=value ...]   records on stdin; prints offset and timestamp of each, in order
//   Probe consume BOOTSTRAP TOPIC COUNT START        prints COUNT records of partition 0; START is "earliest",
//                                                    "offset:N" or "timestamp:MS"; no group, the partition is assigned
//
// java_client.py compiles and calls it. The test decides what is right; this program only carries.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public final class Probe {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    private static final Duration CONSUME_MAX = Duration.ofSeconds(30);

    public static void main(String[] arguments) throws Exception {
        switch (arguments[0]) {
            case "produce" -> produce(arguments);
            case "consume" -> consume(arguments);
            default -> throw new IllegalArgumentException("unknown command " + arguments[0]);
        }
        OUT.flush();
    }

    private static void produce(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[1]);
        for (int index = 3; index < arguments.length; index++) {
            String[] setting = arguments[index].split("=", 2);
            settings.put(setting[0], setting[1]);
        }
        var stdin = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (String line = stdin.readLine(); line != null; line = stdin.readLine()) {
                sent.add(producer.send(record(arguments[2], JSON.readTree(line))));
            }
            producer.flush();
            for (Future<RecordMetadata> future : sent) {
                RecordMetadata metadata = future.get();
                ObjectNode row = JSON.createObjectNode();
                row.put("offset", metadata.offset());
                row.put("timestamp", metadata.timestamp());
                OUT.println(JSON.writeValueAsString(row));
            }
        }
    }

    private static ProducerRecord<byte[], byte[]> record(String topic, JsonNode row) {
        Long timestamp = row.path("timestamp").isNumber() ? row.get("timestamp").asLong() : null;
        var record = new ProducerRecord<>(topic, 0, timestamp, bytes(row.get("key")), bytes(row.get("value")));
        for (JsonNode header : row.path("headers")) {
            record.headers().add(header.get(0).asText(), bytes(header.get(1)));
        }
        return record;
    }

    private static void consume(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[1]);
        settings.put("enable.auto.commit", "false");
        var partition = new TopicPartition(arguments[2], 0);
        int count = Integer.parseInt(arguments[3]);
        long deadline = System.nanoTime() + CONSUME_MAX.toNanos();
        try (var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(List.of(partition));
            seek(consumer, partition, arguments[4]);
            int seen = 0;
            while (seen < count && System.nanoTime() < deadline) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                    if (seen++ < count) OUT.println(JSON.writeValueAsString(row(record)));
                }
            }
        }
    }

    private static void seek(KafkaConsumer<byte[], byte[]> consumer, TopicPartition partition, String start) {
        if (start.equals("earliest")) {
            consumer.seekToBeginning(List.of(partition));
        } else if (start.startsWith("offset:")) {
            consumer.seek(partition, Long.parseLong(start.substring(7)));
        } else if (start.startsWith("timestamp:")) {
            long timestamp = Long.parseLong(start.substring(10));
            OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(partition, timestamp)).get(partition);
            if (found == null) {
                consumer.seekToEnd(List.of(partition));
            } else {
                consumer.seek(partition, found.offset());
            }
        } else {
            throw new IllegalArgumentException("unknown start " + start);
        }
    }

    private static ObjectNode row(ConsumerRecord<byte[], byte[]> record) {
        ObjectNode row = JSON.createObjectNode();
        row.put("key", text(record.key()));
        row.put("value", text(record.value()));
        ArrayNode headers = row.putArray("headers");
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(text(header.value()));
        }
        row.put("offset", record.offset());
        row.put("timestamp", record.timestamp());
        return row;
    }

    private static byte[] bytes(JsonNode text) {
        return text == null || text.isNull() ? null : Base64.getDecoder().decode(text.asText());
    }

    private static String text(byte[] bytes) {
        return bytes == null ? null : Base64.getEncoder().encodeToString(bytes);
    }
}

// A member of a group with Kafka's own Java client: reads, commits what it has read, and says what happens to it.
//
//   GroupMember BOOTSTRAP GROUP TOPICS [name=value ...]   TOPICS is a list with commas, or /pattern (the broker resolves
//                                                          it) for the consumer protocol
//
// Prints a JSON object per line: assigned and revoked partitions, records, and what the broker has taken as committed,
// each with the time of the machine's monotonic clock. Leaves the group when standard input ends.
// consumer_members.py compiles it.

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public final class GroupMember {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private static final Duration POLL = Duration.ofMillis(50);
    private static final Map<TopicPartition, OffsetAndMetadata> UNCOMMITTED = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", arguments[1]);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        for (int index = 3; index < arguments.length; index++) {
            String[] setting = arguments[index].split("=", 2);
            settings.put(setting[0], setting[1]);
        }
        var isStopping = new AtomicBoolean();
        Thread stopper = new Thread(() -> waitForEnd(isStopping), "stopper");
        stopper.setDaemon(true);
        stopper.start();
        try (var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            if (arguments[2].startsWith("/")) {
                consumer.subscribe(new SubscriptionPattern(arguments[2].substring(1)), new Listener(consumer));
            } else {
                consumer.subscribe(List.of(arguments[2].split(",")), new Listener(consumer));
            }
            while (!isStopping.get()) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(POLL);
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    say(record);
                }
                if (!records.isEmpty()) {
                    commit(consumer);
                }
            }
        }
    }

    private static void commit(KafkaConsumer<byte[], byte[]> consumer) {
        if (UNCOMMITTED.isEmpty()) {
            return;
        }
        try {
            consumer.commitSync(UNCOMMITTED);
        } catch (RebalanceInProgressException | CommitFailedException error) {
            System.err.println(error);
            return;
        }
        ObjectNode row = row("committed");
        ArrayNode offsets = row.putArray("offsets");
        UNCOMMITTED.forEach((place, offset) ->
            offsets.addArray().add(place.topic()).add(place.partition()).add(offset.offset()));
        UNCOMMITTED.clear();
        say(row);
    }

    private static ObjectNode row(String event) {
        ObjectNode row = JSON.createObjectNode();
        row.put("event", event);
        row.put("at", System.nanoTime() / 1e9);
        return row;
    }

    private static void say(ObjectNode row) {
        try {
            OUT.println(JSON.writeValueAsString(row));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static void waitForEnd(AtomicBoolean isStopping) {
        try {
            while (System.in.read() >= 0) {
                // Nothing is said to this program but that it is over.
            }
        } catch (IOException error) {
            System.err.println(error);
        }
        isStopping.set(true);
    }

    private static void say(ConsumerRecord<byte[], byte[]> record) {
        ObjectNode row = row("record");
        row.put("topic", record.topic());
        row.put("partition", record.partition());
        row.put("offset", record.offset());
        row.put("value", record.value() == null ? "" : new String(record.value(), StandardCharsets.UTF_8));
        UNCOMMITTED.put(
            new TopicPartition(record.topic(), record.partition()), new OffsetAndMetadata(record.offset() + 1));
        say(row);
    }

    private static final class Listener implements ConsumerRebalanceListener {
        private final KafkaConsumer<byte[], byte[]> consumer;

        Listener(KafkaConsumer<byte[], byte[]> consumer) {
            this.consumer = consumer;
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            say("assigned", partitions);
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            // What could not be committed because a rebalance had begun is committed before it goes on.
            commit(consumer);
            UNCOMMITTED.keySet().removeAll(partitions);
            say("revoked", partitions);
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            UNCOMMITTED.keySet().removeAll(partitions);
            say("revoked", partitions);
        }

        private static void say(String event, Collection<TopicPartition> partitions) {
            ObjectNode row = row(event);
            ArrayNode named = row.putArray("partitions");
            for (TopicPartition partition : partitions) {
                named.addArray().add(partition.topic()).add(partition.partition());
            }
            GroupMember.say(row);
        }
    }
}

// Kafka's own transactional producer and read_committed consumer, driven by lines on standard input.
//
//   Transactions BOOTSTRAP TRANSACTIONAL_ID TIMEOUT_MS
//     init | begin | commit | abort | close
//     send TOPIC PARTITION VALUE          waits for the acknowledgement
//     offset TOPIC PARTITION OFFSET GROUP as a part of the transaction
//     read TOPIC PARTITION LAST           the committed values up to the one that is LAST
//
// Each line is answered with one: "ok", what was read, or "error" and the class and message of the exception.
// transactional_clients.py compiles and calls it.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public final class Transactions {
    private static final long READ_MS_MAX = 20_000;

    private final String bootstrap;
    private final KafkaProducer<String, String> producer;

    private Transactions(String[] arguments) {
        bootstrap = arguments[0];
        producer = new KafkaProducer<>(
            Map.of(
                "bootstrap.servers", bootstrap,
                "transactional.id", arguments[1],
                "transaction.timeout.ms", arguments[2],
                "max.block.ms", "20000"),
            new StringSerializer(),
            new StringSerializer());
    }

    public static void main(String[] arguments) throws Exception {
        var session = new Transactions(arguments);
        var stdin = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = stdin.readLine(); line != null; line = stdin.readLine()) {
            System.out.println(session.answer(line.split(" ")));
            System.out.flush();
        }
    }

    private String answer(String[] words) {
        try {
            return perform(words);
        } catch (ExecutionException error) {
            return "error " + error.getCause();
        } catch (Exception error) {
            return "error " + error;
        }
    }

    private String perform(String[] words) throws Exception {
        switch (words[0]) {
            case "init" -> producer.initTransactions();
            case "begin" -> producer.beginTransaction();
            case "commit" -> producer.commitTransaction();
            case "abort" -> producer.abortTransaction();
            case "close" -> producer.close(Duration.ofSeconds(1));
            case "send" -> producer.send(new ProducerRecord<>(words[1], Integer.valueOf(words[2]), null, words[3])).get();
            case "offset" -> producer.sendOffsetsToTransaction(
                Map.of(
                    new TopicPartition(words[1], Integer.parseInt(words[2])),
                    new OffsetAndMetadata(Long.parseLong(words[3]))),
                new ConsumerGroupMetadata(words[4]));
            case "read" -> {
                return read(new TopicPartition(words[1], Integer.parseInt(words[2])), words[3]);
            }
            default -> throw new IllegalArgumentException("unknown command " + words[0]);
        }
        return "ok";
    }

    private String read(TopicPartition partition, String last) {
        List<String> values = new ArrayList<>();
        try (var consumer = new KafkaConsumer<>(
                Map.<String, Object>of("bootstrap.servers", bootstrap, "isolation.level", "read_committed"),
                new StringDeserializer(),
                new StringDeserializer())) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long end = System.currentTimeMillis() + READ_MS_MAX;
            while (!values.contains(last) && System.currentTimeMillis() < end) {
                consumer.poll(Duration.ofMillis(200)).forEach(record -> values.add(record.value()));
            }
        }
        return String.join(" ", values);
    }
}

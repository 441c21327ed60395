import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Reads a topic as a member of a group and commits each batch, until its input ends; says so, line by line. */
public final class ClusterMember {
    public static void main(String[] arguments) throws Exception {
        AtomicBoolean isOver = new AtomicBoolean();
        Thread listener = new Thread(() -> {
            try {
                while (System.in.read() >= 0) { }
            } catch (IOException error) {
                System.out.println("P " + error);
            }
            isOver.set(true);
        });
        listener.setDaemon(true);
        listener.start();
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", arguments[2]);
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        try (KafkaConsumer<byte[], byte[]> consumer =
                 new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(arguments[1]));
            while (!isOver.get()) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(100));
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    System.out.println("R " + record.partition() + " " + record.offset());
                }
                if (!records.isEmpty()) {
                    try {
                        consumer.commitSync();
                        System.out.println("C");
                    } catch (KafkaException error) {
                        System.out.println("X " + error);
                    }
                }
            }
        }
    }
}

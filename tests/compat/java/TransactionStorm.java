import java.nio.charset.StandardCharsets;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Commits to every partition and at once aborts the next transaction, round after round: address, topic, partitions,
 * transactional id, rounds. Prints the rounds that went well; any error ends the program with a stack trace. */
public final class TransactionStorm {
    public static void main(String[] arguments) {
        String topic = arguments[1];
        int partitions = Integer.parseInt(arguments[2]);
        int rounds = Integer.parseInt(arguments[4]);
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("transactional.id", arguments[3]);
        settings.put("linger.ms", "0");
        try (KafkaProducer<byte[], byte[]> producer =
                 new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.initTransactions();
            for (int round = 0; round < rounds; round++) {
                begin(producer, topic, partitions, "kept " + round);
                producer.commitTransaction();
                begin(producer, topic, partitions, "aborted " + round);
                producer.abortTransaction();
            }
            System.out.println(rounds);
        }
    }

    private static void begin(KafkaProducer<byte[], byte[]> producer, String topic, int partitions, String text) {
        byte[] value = text.getBytes(StandardCharsets.US_ASCII);
        producer.beginTransaction();
        for (int partition = 0; partition < partitions; partition++) {
            producer.send(new ProducerRecord<>(topic, partition, null, value));
        }
    }
}

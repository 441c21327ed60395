import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Writes numbered transactions until its input ends: B begins to commit one, C has committed it, A has aborted it. */
public final class ClusterTransactor {
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
        int partitions = Integer.parseInt(arguments[2]);
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("transactional.id", arguments[3]);
        settings.put("linger.ms", "0");
        try (KafkaProducer<byte[], byte[]> producer =
                 new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.initTransactions();
            for (long number = 1; !isOver.get(); number++) {
                byte[] value = ("java " + number).getBytes(StandardCharsets.US_ASCII);
                try {
                    producer.beginTransaction();
                    for (int partition = 0; partition < partitions; partition++) {
                        producer.send(new ProducerRecord<>(arguments[1], partition, null, value));
                    }
                    System.out.println("B " + number);
                    commit(producer);
                    System.out.println("C " + number);
                } catch (ProducerFencedException error) {
                    System.out.println("P " + error);
                    return;
                } catch (KafkaException error) {
                    producer.abortTransaction();
                    System.out.println("A " + number);
                }
            }
        }
    }

    /** A commit whose answer did not come in time is asked for again: nothing else may be done then. */
    private static void commit(KafkaProducer<byte[], byte[]> producer) {
        while (true) {
            try {
                producer.commitTransaction();
                return;
            } catch (TimeoutException error) {
                System.err.println(error);
            }
        }
    }
}

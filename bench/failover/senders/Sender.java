import java.io.IOException;
import java.io.PrintStream;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/** Sends numbers with Kafka's own client and says what was acknowledged, in the lines that `voice.py` describes. */
public final class Sender {
    private static final PrintStream OUT = new PrintStream(System.out, false);

    private static synchronized void say(String line) {
        OUT.println(line);
        OUT.flush();
    }

    public static void main(String[] arguments) throws Exception {
        String topic = arguments[1];
        int partitions = Integer.parseInt(arguments[2]);
        long pauseMs = Long.parseLong(arguments[3]);
        AtomicBoolean isOver = new AtomicBoolean();
        Thread listener = new Thread(() -> {
            try {
                while (System.in.read() >= 0) { }
            } catch (IOException error) {
                say("F '" + error + "'");
            }
            isOver.set(true);
        });
        listener.setDaemon(true);
        listener.start();
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("enable.idempotence", "true");
        settings.put("acks", "all");
        settings.put("linger.ms", "1");
        settings.put("request.timeout.ms", arguments[4]);
        settings.put("delivery.timeout.ms", "1800000");
        settings.put("max.block.ms", "1800000");
        long sent = 0;
        try (KafkaProducer<String, String> producer =
                 new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            while (!isOver.get()) {
                for (int partition = 0; partition < partitions; partition++) {
                    long number = sent++;
                    long sentNs = System.nanoTime();
                    String value = String.format("%012d", number);
                    producer.send(new ProducerRecord<>(topic, partition, null, value), (metadata, error) -> {
                        if (error != null) {
                            say("F '" + error + "'");
                        } else {
                            say("A " + metadata.partition() + " " + metadata.offset() + " " + number + " " + sentNs
                                + " " + System.nanoTime());
                        }
                    });
                }
                Thread.sleep(pauseMs);
            }
            producer.flush();
        }
        say("E " + sent);
    }
}

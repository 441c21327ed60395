import java.io.BufferedWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Consumer;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TestOutputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.test.TestRecord;

/**
 * Runs named topologies with Apache Kafka's TopologyTestDriver and writes what they emit.
 *
 * Arguments: the file with the records, the directory for the results, then the names of the topologies (all if none).
 * A line of the input has topic, key, value and timestamp, separated by tabs; \N is a null. A line "advance" with a
 * number moves the wall clock.
 */
public final class StreamsJudge {
    private static final HexFormat HEX = HexFormat.of();
    private static final List<String> OUTPUTS = List.of("out", "out2", "out3");

    private static String hex(final byte[] data) {
        return data == null ? "\\N" : HEX.formatHex(data);
    }

    private static Properties settings(final String name, final Path state) {
        final Properties settings = new Properties();
        settings.put("application.id", name);
        settings.put("bootstrap.servers", "none:1");
        settings.put("state.dir", state.toString());
        settings.put("statestore.cache.max.bytes", "0");
        settings.put("default.key.serde", Serdes.StringSerde.class.getName());
        settings.put("default.value.serde", Serdes.StringSerde.class.getName());
        settings.put("__emit.interval.ms.kstreams.outer.join.spurious.results.fix__", "0");
        settings.put("__emit.interval.ms.kstreams.windowed.aggregation__", "0");
        return settings;
    }

    private static String headers(final Iterable<Header> headers) {
        final StringBuilder text = new StringBuilder();
        for (final Header header : headers) {
            text.append(header.key()).append('=').append(hex(header.value())).append(',');
        }
        return text.toString();
    }

    private static void run(final String name, final Consumer<StreamsBuilder> build, final List<String[]> records,
                            final Path results) throws Exception {
        final StreamsBuilder builder = new StreamsBuilder();
        build.accept(builder);
        final Topology topology = builder.build();
        Files.writeString(results.resolve(name + ".topology"), topology.describe().toString());
        final Path state = Files.createTempDirectory("judge");
        int number = 0;
        try (TopologyTestDriver driver = new TopologyTestDriver(topology, settings(name, state), Instant.EPOCH);
             BufferedWriter writer = Files.newBufferedWriter(results.resolve(name + ".out"))) {
            final Map<String, TestInputTopic<String, String>> inputs = new TreeMap<>();
            final Map<String, TestOutputTopic<byte[], byte[]>> outputs = new TreeMap<>();
            for (final String topic : OUTPUTS) {
                outputs.put(topic, driver.createOutputTopic(topic, new ByteArrayDeserializer(), new ByteArrayDeserializer()));
            }
            final Set<String> read = Topologies.topics(name);
            for (final String[] record : records) {
                number++;
                if (record[0].equals("advance")) {
                    driver.advanceWallClockTime(Duration.ofMillis(Long.parseLong(record[1])));
                } else if (read.contains(record[0])) {
                    final String key = record[1].equals("\\N") ? null : record[1];
                    final String value = record[2].equals("\\N") ? null : record[2];
                    final RecordHeaders headers = new RecordHeaders();
                    headers.add("n", Integer.toString(number).getBytes());
                    inputs.computeIfAbsent(record[0], topic ->
                            driver.createInputTopic(topic, new StringSerializer(), new StringSerializer()))
                        .pipeInput(new TestRecord<>(key, value, headers, Long.parseLong(record[3])));
                }
                for (final Map.Entry<String, TestOutputTopic<byte[], byte[]>> output : outputs.entrySet()) {
                    while (!output.getValue().isEmpty()) {
                        final TestRecord<byte[], byte[]> found = output.getValue().readRecord();
                        writer.write(output.getKey() + "\t" + hex(found.key()) + "\t" + hex(found.value()) + "\t"
                            + found.timestamp() + "\t" + headers(found.headers()) + "\n");
                    }
                }
            }
        } catch (final Exception error) {
            final StringBuilder text = new StringBuilder();
            for (Throwable each = error; each != null; each = each.getCause()) {
                text.append(each.getClass().getSimpleName()).append(": ").append(each.getMessage()).append('\n');
            }
            Files.writeString(results.resolve(name + ".error"), "record " + number + "\n" + text);
        }
    }

    public static void main(final String[] arguments) throws Exception {
        final List<String[]> records = new ArrayList<>();
        for (final String line : Files.readAllLines(Path.of(arguments[0]))) {
            records.add(line.split("\t"));
        }
        final Path results = Path.of(arguments[1]);
        Files.createDirectories(results);
        final Map<String, Consumer<StreamsBuilder>> all = Topologies.all();
        final List<String> names = new ArrayList<>(List.of(arguments).subList(2, arguments.length));
        for (final String name : names.isEmpty() ? all.keySet() : names) {
            run(name, all.get(name), records, results);
        }
    }
}

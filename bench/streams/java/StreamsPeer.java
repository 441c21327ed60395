import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TimeWindows;

/** The work as Kafka Streams. Arguments: the bootstrap servers, the workload, the directory of the state, threads. */
public final class StreamsPeer {
    private static final ObjectMapper JSON = new ObjectMapper();

    public record Value(int amount, long sent, String text) { }

    public record Result(int amount, long sent) { }

    private static <T> Serde<T> json(final Class<T> kind) {
        return Serdes.serdeFrom(
            (topic, value) -> {
                try {
                    return value == null ? null : JSON.writeValueAsBytes(value);
                } catch (JsonProcessingException error) {
                    throw new IllegalArgumentException(error);
                }
            },
            (topic, data) -> {
                try {
                    return data == null ? null : JSON.readValue(data, kind);
                } catch (IOException error) {
                    throw new IllegalArgumentException(error);
                }
            });
    }

    private static Result both(final Value one, final Value other) {
        return new Result(one.amount() + other.amount(), one.sent());
    }

    private static void build(final StreamsBuilder builder, final String workload) {
        final Serde<String> keys = Serdes.String();
        final Serde<Value> values = json(Value.class);
        final Consumed<String, Value> consumed = Consumed.with(keys, values);
        final Produced<String, Result> produced = Produced.with(keys, json(Result.class));
        final Produced<String, Long> counted = Produced.with(keys, json(Long.class));
        if (workload.equals("table-table")) {
            final KTable<String, Value> left = builder.table("left", consumed, Materialized.as("left"));
            final KTable<String, Value> right = builder.table("right", consumed, Materialized.as("right"));
            left.join(right, StreamsPeer::both).toStream().to("out-kafka", produced);
            return;
        }
        final KStream<String, Value> left = builder.stream("left", consumed);
        switch (workload) {
            case "map-filter" -> left.filter((key, value) -> value.amount() % 2 == 0)
                .mapValues(value -> new Result(value.amount() * 2, value.sent())).to("out-kafka", produced);
            case "count" -> left.groupByKey(Grouped.with(keys, values)).count(Materialized.as("counts")).toStream()
                .to("out-kafka", counted);
            case "windowed-count" -> left.groupByKey(Grouped.with(keys, values))
                .windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofSeconds(10))).count(Materialized.as("counts"))
                .toStream((window, number) -> window.key()).to("out-kafka", counted);
            case "stream-table" -> left.join(builder.table("right", consumed, Materialized.as("rows")), StreamsPeer::both)
                .to("out-kafka", produced);
            case "stream-stream" -> left.join(builder.stream("right", consumed), StreamsPeer::both,
                JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofMillis(500)), StreamJoined.with(keys, values, values))
                .to("out-kafka", produced);
            default -> throw new IllegalArgumentException(workload);
        }
    }

    public static void main(final String[] arguments) throws Exception {
        final Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("application.id", "kafka-" + arguments[1]);
        settings.put("state.dir", arguments[2]);
        settings.put("num.stream.threads", arguments[3]);
        settings.put("processing.guarantee", "exactly_once_v2");
        settings.put("consumer.auto.offset.reset", "earliest");
        settings.put("statestore.cache.max.bytes", "0");
        final StreamsBuilder builder = new StreamsBuilder();
        build(builder, arguments[1]);
        final KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
    }

    private StreamsPeer() { }
}

import java.time.Duration;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;

/**
 * Three of the applications in examples/streams, as Kafka Streams in Java. Their output topics begin with "java-".
 *
 * Arguments: the name of the application, the bootstrap servers, the directory of the state. It runs until its standard
 * input is closed.
 */
public final class Applications {
    private static final int BOARD_SIZE = 3;

    private static String field(final String json, final String name) {
        final Matcher found = Pattern.compile("\"" + name + "\":(\"([^\"]*)\"|[^,}]*)").matcher(json);
        if (!found.find()) {
            throw new IllegalArgumentException(json);
        }
        return found.group(2) != null ? found.group(2) : found.group(1);
    }

    private static void wordCount(final StreamsBuilder builder) {
        builder.<String, String>stream("lines")
            .flatMapValues(line -> Arrays.stream(line.toLowerCase().split("\\s+")).filter(word -> !word.isEmpty()).toList())
            .groupBy((key, word) -> word)
            .count()
            .toStream()
            .mapValues(String::valueOf)
            .to("java-word-counts");
    }

    private static void paidOrders(final StreamsBuilder builder) {
        final Consumed<String, String> placed = Consumed.with(Serdes.String(), Serdes.String())
            .withTimestampExtractor((record, time) -> Long.parseLong(field((String) record.value(), "placed")));
        final KStream<String, String> orders = builder.stream("orders", placed);
        final KStream<String, String> payments =
            builder.<String, String>stream("payments").selectKey((key, payment) -> field(payment, "order_id"));
        orders.leftJoin(
            payments,
            (order, payment) -> String.format("{\"order_id\":\"%s\",\"total\":%s,\"amount\":%s}", field(order, "id"),
                field(order, "total"), payment == null ? "null" : field(payment, "amount")),
            JoinWindows.ofTimeDifferenceAndGrace(Duration.ofMinutes(5), Duration.ofSeconds(30)))
            .to("java-paid");
    }

    private static Map<String, String> board(final String text) {
        final Map<String, String> board = new TreeMap<>();
        for (final String line : text.split("\n")) {
            if (!line.isEmpty()) {
                board.put(field(line, "player"), line);
            }
        }
        return board;
    }

    private static String best(final String text) {
        final Comparator<String> byPoints = Comparator.comparingInt(line -> -Integer.parseInt(field(line, "points")));
        return board(text).values().stream()
            .sorted(byPoints.thenComparing(line -> field(line, "name")))
            .limit(BOARD_SIZE)
            .collect(Collectors.joining(",", "[", "]"));
    }

    private static void leaderboard(final StreamsBuilder builder) {
        final KTable<String, String> players = builder.table("players");
        final KTable<String, String> totals = builder.<String, String>stream("points")
            .groupByKey()
            .reduce((total, points) -> String.valueOf(Integer.parseInt(total) + Integer.parseInt(points)));
        final KTable<String, String> standings = totals.join(players, (total, player) -> total + "\n" + player)
            .mapValues((player, pair) -> {
                final String[] parts = pair.split("\n", 2);
                return String.format("{\"player\":\"%s\",\"name\":\"%s\",\"league\":\"%s\",\"points\":%s}", player,
                    field(parts[1], "name"), field(parts[1], "league"), parts[0]);
            });
        standings
            .groupBy((player, standing) -> KeyValue.pair(field(standing, "league"), standing),
                Grouped.with(Serdes.String(), Serdes.String()))
            .aggregate(
                () -> "",
                (league, standing, text) -> {
                    final Map<String, String> board = board(text);
                    board.put(field(standing, "player"), standing);
                    return String.join("\n", board.values());
                },
                (league, standing, text) -> {
                    final Map<String, String> board = board(text);
                    board.remove(field(standing, "player"));
                    return String.join("\n", board.values());
                })
            .mapValues(Applications::best)
            .toStream()
            .to("java-leaderboard");
    }

    public static void main(final String[] arguments) throws Exception {
        final Map<String, Consumer<StreamsBuilder>> applications = Map.of("word_count", Applications::wordCount,
            "paid_orders", Applications::paidOrders, "leaderboard", Applications::leaderboard);
        final Properties settings = new Properties();
        settings.put("application.id", "java-" + arguments[0]);
        settings.put("bootstrap.servers", arguments[1]);
        settings.put("state.dir", arguments[2]);
        settings.put("default.key.serde", Serdes.StringSerde.class.getName());
        settings.put("default.value.serde", Serdes.StringSerde.class.getName());
        settings.put("processing.guarantee", "exactly_once_v2");
        settings.put("statestore.cache.max.bytes", "0");
        settings.put("consumer.auto.offset.reset", "earliest");
        // Wait for the records of the other side, also of a repartition topic, before time moves on.
        settings.put("max.task.idle.ms", "5000");
        final StreamsBuilder builder = new StreamsBuilder();
        applications.get(arguments[0]).accept(builder);
        try (KafkaStreams streams = new KafkaStreams(builder.build(), settings)) {
            streams.start();
            while (System.in.read() >= 0) { }
        }
    }

    private Applications() { }
}

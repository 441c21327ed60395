import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.FixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorContext;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.*;

/** The topologies of the judge, by name. The Python side has the same ones under the same names. */
final class Topologies {
    static final Serde<String> S = Serdes.String();
    static final Serde<Long> L = Serdes.Long();
    static final Consumed<String, String> C = Consumed.with(S, S);
    static final Produced<String, String> P = Produced.with(S, S);
    static final Grouped<String, String> G = Grouped.with(S, S);

    /** Kafka drops windows that closed but were not emitted yet when time jumps by more than the retention. */
    static final Duration LONG = Duration.ofDays(365);

    private static final Map<String, Consumer<StreamsBuilder>> ALL = new LinkedHashMap<>();

    static Map<String, Consumer<StreamsBuilder>> all() {
        return ALL;
    }

    static Set<String> topics(final String name) {
        final boolean third = name.contains("three") || name.equals("cogroup");
        final boolean right = third || name.contains("cogroup") || name.contains("join") && !name.contains("self") || name.contains("merge");
        return third ? Set.of("left", "right", "third") : right ? Set.of("left", "right") : Set.of("left");
    }

    static Duration ms(final long value) {
        return Duration.ofMillis(value);
    }

    static KStream<String, String> left(final StreamsBuilder b) {
        return b.stream("left", C);
    }

    static KStream<String, String> right(final StreamsBuilder b) {
        return b.stream("right", C);
    }

    static KTable<String, String> leftTable(final StreamsBuilder b) {
        return b.table("left", C);
    }

    static KTable<String, String> rightTable(final StreamsBuilder b) {
        return b.table("right", C);
    }

    static Materialized<String, String, KeyValueStore<Bytes, byte[]>> kept(final String name) {
        return Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as(name).withKeySerde(S).withValueSerde(S);
    }

    static Materialized<String, String, KeyValueStore<Bytes, byte[]>> typed() {
        return Materialized.<String, String, KeyValueStore<Bytes, byte[]>>with(S, S);
    }

    static Materialized<String, String, WindowStore<Bytes, byte[]>> windowed() {
        return Materialized.<String, String, WindowStore<Bytes, byte[]>>with(S, S);
    }

    static Materialized<String, String, SessionStore<Bytes, byte[]>> sessions() {
        return Materialized.<String, String, SessionStore<Bytes, byte[]>>with(S, S);
    }

    static String add(final String aggregate, final String value) {
        return aggregate.length() > 20 ? value : aggregate + value;
    }

    static String join(final String one, final String other) {
        return one + "+" + other;
    }

    static boolean even(final String value) {
        return value.charAt(value.length() - 1) % 2 == 0;
    }

    /** The key in the other table: a digit of the value, or null. */
    static String foreign(final String value) {
        if (value.isEmpty()) {
            return null;
        }
        final char last = value.charAt(value.length() - 1);
        return last == '9' ? null : "k" + (last - '0') % 6;
    }

    static TimeWindowedSerdes.TimeWindowedSerde<String> timeSerde(final long size) {
        return new TimeWindowedSerdes.TimeWindowedSerde<>(S, size);
    }

    static final class TimeWindowedSerdes {
        static final class TimeWindowedSerde<T> extends Serdes.WrapperSerde<Windowed<T>> {
            TimeWindowedSerde(final Serde<T> inner, final long size) {
                super(new TimeWindowedSerializer<>(inner.serializer()), new TimeWindowedDeserializer<>(inner.deserializer(), size));
            }
        }

        static final class SessionSerde<T> extends Serdes.WrapperSerde<Windowed<T>> {
            SessionSerde(final Serde<T> inner) {
                super(new SessionWindowedSerializer<>(inner.serializer()), new SessionWindowedDeserializer<>(inner.deserializer()));
            }
        }
    }

    static <V> void toWindowed(final KTable<Windowed<String>, V> table, final Serde<V> serde, final long size) {
        table.toStream().to("out", Produced.with(timeSerde(size), serde));
    }

    static <V> void toSession(final KTable<Windowed<String>, V> table, final Serde<V> serde) {
        table.toStream().to("out", Produced.with(new TimeWindowedSerdes.SessionSerde<>(S), serde));
    }

    static TimeWindows tumbling(final long size, final long grace) {
        return TimeWindows.ofSizeAndGrace(ms(size), ms(grace));
    }

    static TimeWindows hopping(final long size, final long advance, final long grace) {
        return tumbling(size, grace).advanceBy(ms(advance));
    }

    static SlidingWindows sliding(final long difference, final long grace) {
        return SlidingWindows.ofTimeDifferenceAndGrace(ms(difference), ms(grace));
    }

    static SessionWindows session(final long gap, final long grace) {
        return SessionWindows.ofInactivityGapAndGrace(ms(gap), ms(grace));
    }

    static void put(final String name, final Consumer<StreamsBuilder> build) {
        ALL.put(name, build);
    }

    static void stateless() {
        put("filter", b -> left(b).filter((k, v) -> v != null && even(v)).to("out", P));
        put("filter_not", b -> left(b).filterNot((k, v) -> v == null || even(v)).to("out", P));
        put("map", b -> left(b).map((k, v) -> KeyValue.pair(v + "!", k + "?")).to("out", P));
        put("map_values", b -> left(b).mapValues(v -> v + "!").to("out", P));
        put("map_values_with_key", b -> left(b).mapValues((k, v) -> k + "/" + v).to("out", P));
        put("flat_map", b -> left(b).flatMap((k, v) -> List.of(KeyValue.pair(k + "1", v), KeyValue.pair(k + "2", v))).to("out", P));
        put("flat_map_values", b -> left(b).flatMapValues(v -> v == null ? List.<String>of() : List.of(v, v + v)).to("out", P));
        put("select_key", b -> left(b).selectKey((k, v) -> v == null ? null : v.substring(0, 2)).to("out", P));
        put("merge", b -> left(b).mapValues(v -> "l" + v).merge(right(b)).to("out", P));
        put("split", b -> {
            final Map<String, KStream<String, String>> found = left(b).split(Named.as("s-"))
                .branch((k, v) -> v == null, Branched.as("1")).branch((k, v) -> even(v), Branched.as("2"))
                .defaultBranch(Branched.as("0"));
            found.get("s-1").to("out", P);
            found.get("s-2").to("out2", P);
            found.get("s-0").to("out3", P);
        });
        put("split_without_default", b -> {
            final Map<String, KStream<String, String>> found = left(b).split()
                .branch((k, v) -> v == null, Branched.as("1")).branch((k, v) -> even(v), Branched.as("2")).noDefaultBranch();
            found.values().stream().findFirst();
            found.get("KSTREAM-BRANCH-00000000011").to("out", P);
            found.get("KSTREAM-BRANCH-00000000012").to("out2", P);
        });
        put("to_by_function", b -> left(b).to((k, v, context) -> v == null || even(v) ? "out" : "out2", P));
        put("repartition", b -> left(b).selectKey((k, v) -> v == null ? null : v.substring(0, 2)).repartition(Repartitioned.<String, String>as("again").withKeySerde(S).withValueSerde(S)).to("out", P));
        put("repartition_generated", b -> left(b).repartition(Repartitioned.with(S, S)).to("out", P));
        put("two_children", b -> {
            final KStream<String, String> l = left(b);
            l.mapValues(v -> v + "1").to("out", P);
            l.filter((k, v) -> v != null).mapValues(v -> v + "2").to("out", P);
            l.peek((k, v) -> { }).to("out2", P);
        });
    }

    static void tables() {
        put("table", b -> leftTable(b).toStream().to("out", P));
        put("table_store", b -> b.table("left", C, kept("rows")).toStream().to("out", P));
        put("table_filter", b -> leftTable(b).filter((k, v) -> even(v)).toStream().to("out", P));
        put("table_filter_of_store", b -> b.table("left", C, kept("rows")).filter((k, v) -> even(v)).toStream().to("out", P));
        put("table_filter_store", b -> leftTable(b).filter((k, v) -> even(v), kept("even")).toStream().to("out", P));
        put("table_filter_not", b -> b.table("left", C, kept("rows")).filterNot((k, v) -> even(v), Named.as("odd")).toStream().to("out", P));
        put("table_map_values", b -> leftTable(b).mapValues(v -> v + "!").toStream().to("out", P));
        put("table_map_values_store", b -> leftTable(b).mapValues((k, v) -> even(v) ? null : k + v, kept("mapped")).toStream().to("out", P));
        put("table_chain", b -> leftTable(b).mapValues(v -> v + "!").filter((k, v) -> v.length() % 2 == 0).mapValues(v -> v + "?", kept("chain")).filter((k, v) -> v.length() > 4).toStream().to("out", P));
        put("to_table", b -> left(b).toTable().toStream().to("out", P));
        put("to_table_store", b -> left(b).toTable(kept("rows")).filter((k, v) -> even(v)).toStream().to("out", P));
        put("to_table_repartition", b -> left(b).selectKey((k, v) -> v == null ? null : v.substring(0, 2)).toTable(Named.as("tab"), typed()).toStream().to("out", P));
        put("table_group_count", b -> leftTable(b).groupBy((k, v) -> KeyValue.pair(foreign(v), v), G).count().toStream().to("out", Produced.with(S, L)));
        put("table_group_reduce", b -> leftTable(b).groupBy((k, v) -> KeyValue.pair(foreign(v), v), G).reduce((a, v) -> add(a, v), (a, v) -> a + "-" + v, kept("sum")).toStream().to("out", P));
        put("table_group_aggregate", b -> leftTable(b).groupBy((k, v) -> KeyValue.pair(foreign(v), v), G).aggregate(() -> "", (k, v, a) -> add(a, v), (k, v, a) -> a.length() > 12 ? null : a + "-", Named.as("agg"), typed()).toStream().to("out", P));
        put("table_group_of_filter", b -> leftTable(b).filter((k, v) -> even(v)).mapValues(v -> v + "0").groupBy((k, v) -> KeyValue.pair(v.substring(0, 2), v), Grouped.<String, String>with("groups", S, S)).count(Materialized.as("counted")).toStream().to("out", Produced.with(S, L)));
    }

    static void aggregations() {
        put("count", b -> left(b).groupByKey(G).count().toStream().to("out", Produced.with(S, L)));
        put("count_store", b -> left(b).groupByKey(G).count(Materialized.as("counts")).toStream().to("out", Produced.with(S, L)));
        put("count_by", b -> left(b).groupBy((k, v) -> v == null ? null : v.substring(0, 2), G).count(Named.as("counting")).toStream().to("out", Produced.with(S, L)));
        put("reduce", b -> left(b).groupByKey(G).reduce((a, v) -> add(a, v)).toStream().to("out", P));
        put("aggregate", b -> left(b).groupByKey(G).aggregate(() -> "", (k, v, a) -> add(a, v), typed()).toStream().to("out", P));
        put("aggregate_to_null", b -> left(b).groupByKey(G).aggregate(() -> "x", (k, v, a) -> a.length() > 12 ? null : a + v, typed()).toStream().to("out", P));
        put("aggregate_then_group", b -> left(b).groupByKey(G).aggregate(() -> "", (k, v, a) -> add(a, v), typed()).groupBy((k, v) -> KeyValue.pair(foreign(v), v), G).aggregate(() -> "", (k, v, a) -> add(a, v), (k, v, a) -> a + "-", typed()).toStream().to("out", P));
        put("two_aggregations_of_one_group", b -> {
            final KGroupedStream<String, String> grouped = left(b).groupBy((k, v) -> v == null ? null : v.substring(0, 2), Grouped.with("by", S, S));
            grouped.count().toStream().to("out", Produced.with(S, L));
            grouped.reduce((a, v) -> add(a, v)).toStream().to("out2", P);
        });
        put("cogroup", b -> left(b).groupByKey(G).cogroup((String k, String v, String a) -> add(a, "l" + v))
            .cogroup(right(b).groupByKey(G), (k, v, a) -> add(a, "r" + v))
            .cogroup(b.stream("third", C).groupBy((k, v) -> v == null ? null : "k1", G), (k, v, a) -> add(a, "t"))
            .aggregate(() -> "", typed()).toStream().to("out", P));
    }

    static void windows() {
        put("tumbling_count", b -> toWindowed(left(b).groupByKey(G).windowedBy(tumbling(100, 30)).count(), L, 100));
        put("tumbling_count_without_grace", b -> toWindowed(left(b).groupByKey(G).windowedBy(tumbling(100, 0)).count(Materialized.as("counts")), L, 100));
        put("hopping_count", b -> toWindowed(left(b).groupByKey(G).windowedBy(hopping(100, 40, 30)).count(), L, 100));
        put("hopping_reduce", b -> toWindowed(left(b).filter((k, v) -> v != null).groupByKey(G).windowedBy(hopping(90, 30, 20)).reduce((a, v) -> add(a, v)), S, 90));
        put("tumbling_aggregate", b -> toWindowed(left(b).groupByKey(G).windowedBy(tumbling(50, 100)).aggregate(() -> "", (k, v, a) -> add(a, "" + v), windowed()), S, 50));
        put("tumbling_aggregate_to_null", b -> toWindowed(left(b).groupByKey(G).windowedBy(tumbling(200, 100)).aggregate(() -> "", (k, v, a) -> a.length() > 8 ? null : a + v, windowed()), S, 200));
        put("sliding_count", b -> toWindowed(left(b).groupByKey(G).windowedBy(sliding(60, 30)).count(), L, 60));
        put("sliding_aggregate", b -> toWindowed(left(b).groupByKey(G).windowedBy(sliding(40, 200)).aggregate(() -> "", (k, v, a) -> add(a, v), windowed()), S, 40));
        put("sliding_reduce", b -> toWindowed(left(b).groupByKey(G).windowedBy(sliding(40, 60)).reduce((a, v) -> add(a, v)), S, 40));
        put("session_count", b -> toSession(left(b).groupByKey(G).windowedBy(session(25, 40)).count(), L));
        put("session_reduce", b -> toSession(left(b).filter((k, v) -> v != null).groupByKey(G).windowedBy(session(15, 0)).reduce((a, v) -> add(a, v)), S));
        put("session_aggregate", b -> toSession(left(b).groupByKey(G).windowedBy(session(25, 100)).aggregate(() -> "", (k, v, a) -> add(a, "" + v), (k, one, other) -> add(one, other), sessions()), S));
        put("tumbling_close", b -> toWindowed(left(b).groupByKey(G).windowedBy(tumbling(100, 30)).emitStrategy(EmitStrategy.onWindowClose()).count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("closing").withRetention(LONG)), L, 100));
        put("hopping_close", b -> toWindowed(left(b).groupByKey(G).windowedBy(hopping(100, 40, 30)).emitStrategy(EmitStrategy.onWindowClose()).aggregate(() -> "", (k, v, a) -> add(a, "" + v), windowed().withRetention(LONG)), S, 100));
        put("sliding_close", b -> toWindowed(left(b).groupByKey(G).windowedBy(sliding(60, 30)).emitStrategy(EmitStrategy.onWindowClose()).count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("closing").withRetention(LONG)), L, 60));
        put("session_close", b -> toSession(left(b).groupByKey(G).windowedBy(session(25, 40)).emitStrategy(EmitStrategy.onWindowClose()).count(Materialized.<String, Long, SessionStore<Bytes, byte[]>>as("closing").withRetention(LONG)), L));
        put("cogroup_tumbling", b -> toWindowed(grouped(b).windowedBy(tumbling(100, 30)).aggregate(() -> "", windowed()), S, 100));
        put("cogroup_sliding", b -> toWindowed(grouped(b).windowedBy(sliding(40, 30)).aggregate(() -> "", windowed()), S, 40));
        put("cogroup_session", b -> toSession(grouped(b).windowedBy(session(20, 30)).aggregate(() -> "", (k, one, other) -> add(one, other), sessions()), S));
        put("windowed_then_grouped", b -> left(b).groupByKey(G).windowedBy(tumbling(100, 30)).count().groupBy((w, v) -> KeyValue.pair(w.key(), "" + v), G).reduce((a, v) -> add(a, v), (a, v) -> a + "-" + v).toStream().to("out", P));
        put("windowed_filter", b -> toWindowed(left(b).groupByKey(G).windowedBy(tumbling(100, 30)).count().filter((w, v) -> v % 2 == 0), L, 100));
    }

    static CogroupedKStream<String, String> grouped(final StreamsBuilder b) {
        return left(b).groupByKey(G).cogroup((String k, String v, String a) -> add(a, "l" + v)).cogroup(right(b).groupByKey(G), (k, v, a) -> add(a, "r" + v));
    }

    static void suppression() {
        put("suppress_tumbling", b -> toWindowed(left(b).groupByKey(G).windowedBy(tumbling(100, 30)).count().suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded())), L, 100));
        put("suppress_hopping", b -> toWindowed(left(b).groupByKey(G).windowedBy(hopping(100, 40, 0)).aggregate(() -> "", (k, v, a) -> add(a, "" + v), windowed()).suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()).withName("held")), S, 100));
        put("suppress_sliding", b -> toWindowed(left(b).groupByKey(G).windowedBy(sliding(60, 30)).count().suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded())), L, 60));
        put("suppress_session", b -> toSession(left(b).groupByKey(G).windowedBy(session(25, 40)).count().suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded())), L));
        put("suppress_time_limit", b -> leftTable(b).suppress(Suppressed.untilTimeLimit(ms(50), Suppressed.BufferConfig.unbounded())).toStream().to("out", P));
        put("suppress_records", b -> leftTable(b).suppress(Suppressed.untilTimeLimit(ms(5000), Suppressed.BufferConfig.maxRecords(3))).toStream().to("out", P));
        put("suppress_bytes", b -> leftTable(b).suppress(Suppressed.untilTimeLimit(ms(5000), Suppressed.BufferConfig.maxBytes(200))).toStream().to("out", P));
        put("suppress_with_old_values", b -> b.table("left", C, kept("rows")).suppress(Suppressed.untilTimeLimit(ms(40), Suppressed.BufferConfig.unbounded())).groupBy((k, v) -> KeyValue.pair(foreign(v), v), G).reduce((a, v) -> add(a, v), (a, v) -> a + "-" + v).toStream().to("out", P));
        put("suppress_then_join", b -> leftTable(b).suppress(Suppressed.untilTimeLimit(ms(40), Suppressed.BufferConfig.unbounded())).outerJoin(rightTable(b), Topologies::join).toStream().to("out", P));
        put("suppress_limit_of_windows", b -> toWindowed(left(b).groupByKey(G).windowedBy(tumbling(100, 30)).count().suppress(Suppressed.untilTimeLimit(ms(30), Suppressed.BufferConfig.maxRecords(4).emitEarlyWhenFull())), L, 100));
    }

    static void tableJoins() {
        put("table_join", b -> leftTable(b).join(rightTable(b), Topologies::join).toStream().to("out", P));
        put("table_left_join", b -> leftTable(b).leftJoin(rightTable(b), Topologies::join).toStream().to("out", P));
        put("table_outer_join", b -> leftTable(b).outerJoin(rightTable(b), Topologies::join).toStream().to("out", P));
        put("table_join_store", b -> leftTable(b).join(rightTable(b), Topologies::join, kept("joined")).toStream().to("out", P));
        put("table_left_join_store", b -> leftTable(b).leftJoin(rightTable(b), Topologies::join, Named.as("tj"), kept("joined")).filter((k, v) -> even(v)).toStream().to("out", P));
        put("table_outer_join_store", b -> leftTable(b).outerJoin(rightTable(b), Topologies::join, kept("joined")).mapValues(v -> v + "!").toStream().to("out", P));
        put("table_join_three", b -> leftTable(b).join(rightTable(b), Topologies::join).leftJoin(b.table("third", C), Topologies::join).toStream().to("out", P));
        put("table_outer_join_three", b -> leftTable(b).outerJoin(rightTable(b), Topologies::join).outerJoin(b.table("third", C), Topologies::join).toStream().to("out", P));
        put("table_join_of_views", b -> leftTable(b).filter((k, v) -> even(v)).join(rightTable(b).mapValues(v -> v + "!"), Topologies::join).toStream().to("out", P));
        put("table_join_then_group", b -> leftTable(b).leftJoin(rightTable(b), Topologies::join).groupBy((k, v) -> KeyValue.pair(v.substring(0, 2), v), G).reduce((a, v) -> add(a, v), (a, v) -> a + "-").toStream().to("out", P));
        put("table_join_of_counts", b -> left(b).groupByKey(G).count().join(right(b).groupByKey(G).count(), (x, y) -> x + "/" + y).toStream().to("out", P));
        put("table_outer_join_then_stream", b -> {
            final KTable<String, String> joined = leftTable(b).outerJoin(rightTable(b), Topologies::join);
            joined.toStream().filter((k, v) -> v != null).groupByKey(G).count().toStream().to("out", Produced.with(S, L));
            joined.toStream().to("out2", P);
        });
        put("foreign_join", b -> leftTable(b).join(rightTable(b), Topologies::foreign, Topologies::join).toStream().to("out", P));
        put("foreign_left_join", b -> leftTable(b).leftJoin(rightTable(b), Topologies::foreign, Topologies::join).toStream().to("out", P));
        put("foreign_join_store", b -> leftTable(b).join(rightTable(b), Topologies::foreign, Topologies::join, TableJoined.as("fk"), kept("joined")).filter((k, v) -> even(v)).toStream().to("out", P));
        put("foreign_join_of_filter", b -> leftTable(b).filter((k, v) -> even(v)).mapValues(v -> v + "2").leftJoin(rightTable(b).mapValues(v -> v + "!"), Topologies::foreign, Topologies::join, typed()).toStream().to("out", P));
        put("foreign_join_then_group", b -> leftTable(b).join(rightTable(b), Topologies::foreign, Topologies::join, typed()).groupBy((k, v) -> KeyValue.pair(v.substring(0, 2), v), G).count().toStream().to("out", Produced.with(S, L)));
    }

    static final StreamJoined<String, String, String> SJ = StreamJoined.with(S, S, S);

    static JoinWindows within(final long difference, final long grace) {
        return JoinWindows.ofTimeDifferenceAndGrace(ms(difference), ms(grace));
    }

    static void streamJoins() {
        put("stream_join", b -> left(b).join(right(b), Topologies::join, within(50, 20), SJ).to("out", P));
        put("stream_left_join", b -> left(b).leftJoin(right(b), Topologies::join, within(50, 20), SJ).to("out", P));
        put("stream_outer_join", b -> left(b).outerJoin(right(b), Topologies::join, within(50, 20), SJ).to("out", P));
        put("stream_join_before", b -> left(b).join(right(b), Topologies::join, within(50, 20).after(ms(0)), SJ).to("out", P));
        put("stream_left_join_after", b -> left(b).leftJoin(right(b), Topologies::join, within(20, 0).after(ms(80)), SJ).to("out", P));
        put("stream_outer_join_before", b -> left(b).outerJoin(right(b), Topologies::join, within(10, 5).before(ms(60)), SJ.withName("soj").withStoreName("sojs")).to("out", P));
        put("stream_join_with_key", b -> left(b).join(right(b), (k, x, y) -> k + x + y, within(20, 500), SJ).to("out", P));
        put("stream_join_repartition", b -> left(b).selectKey((k, v) -> v == null ? null : "k" + v.charAt(1)).join(right(b).map((k, v) -> KeyValue.pair(k, v)), Topologies::join, within(30, 20), SJ).to("out", P));
        put("stream_left_join_repartition", b -> left(b).selectKey((k, v) -> v == null || even(v) ? null : k).leftJoin(right(b), Topologies::join, within(30, 20), SJ.withName("again")).to("out", P));
        put("stream_join_then_count", b -> left(b).join(right(b), Topologies::join, within(30, 20), SJ).groupByKey(G).count().toStream().to("out", Produced.with(S, L)));
        put("stream_self_join", b -> {
            final KStream<String, String> l = left(b);
            l.join(l.mapValues(v -> v + "!"), Topologies::join, within(20, 20), SJ).to("out", P);
        });
        put("stream_table_join", b -> left(b).join(rightTable(b), Topologies::join).to("out", P));
        put("stream_table_left_join", b -> left(b).leftJoin(rightTable(b), Topologies::join).to("out", P));
        put("stream_table_join_with_key", b -> left(b).leftJoin(rightTable(b).filter((k, v) -> even(v)), (k, x, y) -> k + x + y).to("out", P));
        put("stream_table_join_repartition", b -> left(b).selectKey((k, v) -> v == null ? null : "k" + v.charAt(1)).join(rightTable(b), Topologies::join, Joined.with(S, S, S)).to("out", P));
        put("stream_table_left_join_null_keys", b -> left(b).selectKey((k, v) -> v == null || even(v) ? null : k).leftJoin(rightTable(b), Topologies::join, Joined.with(S, S, S, "stj")).to("out", P));
        put("stream_table_join_of_count", b -> left(b).join(right(b).groupByKey(G).count(), (x, y) -> x + y).to("out", P));
        put("stream_global_join", b -> left(b).join(b.globalTable("right", C), (k, v) -> v == null ? null : foreign(v), Topologies::join).to("out", P));
        put("stream_global_left_join", b -> left(b).leftJoin(b.globalTable("right", C, kept("all")), (k, v) -> v == null ? null : foreign(v), (k, x, y) -> k + x + y).to("out", P));
    }

    static Materialized<String, String, KeyValueStore<Bytes, byte[]>> versions(final String name, final long history) {
        return Materialized.<String, String>as(Stores.persistentVersionedKeyValueStore(name, ms(history))).withKeySerde(S).withValueSerde(S);
    }

    static void versioned() {
        put("versioned_table", b -> b.table("left", C, versions("versions", 150)).toStream().to("out", P));
        put("versioned_filter", b -> b.table("left", C, versions("versions", 150)).filter((k, v) -> even(v)).toStream().to("out", P));
        put("versioned_table_join", b -> b.table("left", C, versions("versions", 150)).join(rightTable(b), Topologies::join).toStream().to("out", P));
        put("versioned_table_outer_join", b -> b.table("left", C, versions("lv", 150)).outerJoin(b.table("right", C, versions("rv", 100)), Topologies::join).toStream().to("out", P));
        put("versioned_group", b -> b.table("left", C, versions("versions", 150)).groupBy((k, v) -> KeyValue.pair(foreign(v), v), G).reduce((a, v) -> add(a, v), (a, v) -> a + "-" + v).toStream().to("out", P));
        put("versioned_stream_join", b -> left(b).join(b.table("right", C, versions("versions", 100)), Topologies::join).to("out", P));
        put("versioned_stream_left_join_waits", b -> left(b).filter((k, v) -> k != null).leftJoin(b.table("right", C, versions("versions", 100)), Topologies::join, Joined.<String, String, String>with(S, S, S).withGracePeriod(ms(40))).to("out", P));
        put("versioned_foreign_join", b -> b.table("left", C, versions("lv", 150)).join(b.table("right", C, versions("rv", 100)), Topologies::foreign, Topologies::join, typed()).toStream().to("out", P));
    }

    /** Keeps the last values of each key, emits on each record and at intervals, and forgets. */
    static final class Recent implements Processor<String, String, String, String> {
        private ProcessorContext<String, String> context;
        private KeyValueStore<String, String> recent;
        private final boolean ticks;

        Recent(final boolean ticks) {
            this.ticks = ticks;
        }

        @Override
        public void init(final ProcessorContext<String, String> given) {
            context = given;
            recent = given.getStateStore("recent");
            given.schedule(ms(100), PunctuationType.STREAM_TIME, this::flush);
            if (!ticks) {
                return;
            }
            given.schedule(ms(1000), PunctuationType.WALL_CLOCK_TIME, now -> context.forward(new Record<>("tick", "" + now, now)));
        }

        private void flush(final long now) {
            final List<KeyValue<String, String>> all = new ArrayList<>();
            try (KeyValueIterator<String, String> found = recent.all()) {
                found.forEachRemaining(all::add);
            }
            for (final KeyValue<String, String> entry : all) {
                context.forward(new Record<>(entry.key, "at " + now + " " + entry.value, now));
                if (entry.value.length() > 8) {
                    recent.delete(entry.key);
                }
            }
        }

        @Override
        public void process(final Record<String, String> record) {
            if (record.key() == null) {
                return;
            }
            final String before = recent.get(record.key());
            recent.put(record.key(), record.value() == null ? null : before == null ? record.value() : add(before, record.value()));
            context.forward(record.withValue(before + "/" + record.value() + "/" + context.currentStreamTimeMs()
                + "/" + context.recordMetadata().get().offset()));
        }
    }

    static final class Sessions implements Processor<String, String, String, String> {
        private ProcessorContext<String, String> context;
        private WindowStore<String, String> windows;
        private SessionStore<String, String> sessions;

        @Override
        public void init(final ProcessorContext<String, String> given) {
            context = given;
            windows = given.getStateStore("windows");
            sessions = given.getStateStore("sessions");
        }

        @Override
        public void process(final Record<String, String> record) {
            if (record.key() == null || record.value() == null) {
                return;
            }
            final long t = record.timestamp();
            final long start = t / 20 * 20;
            windows.put(record.key(), record.value(), start);
            final StringBuilder text = new StringBuilder();
            try (WindowStoreIterator<String> found = windows.fetch(record.key(), t - 60, t + 40)) {
                found.forEachRemaining(entry -> text.append(entry.key).append('=').append(entry.value).append(';'));
            }
            sessions.put(new Windowed<>(record.key(), new org.apache.kafka.streams.kstream.internals.SessionWindow(t, t + 5)), record.value());
            try (KeyValueIterator<Windowed<String>, String> found = sessions.findSessions(record.key(), t - 30, t + 30)) {
                found.forEachRemaining(entry -> text.append(entry.key.window().start()).append(':').append(entry.value).append(';'));
            }
            context.forward(record.withValue(text.toString()), even(record.value()) ? "even" : "odd");
        }
    }

    static final class Headed implements FixedKeyProcessor<String, String, String> {
        private FixedKeyProcessorContext<String, String> context;

        @Override
        public void init(final FixedKeyProcessorContext<String, String> given) {
            context = given;
        }

        @Override
        public void process(final FixedKeyRecord<String, String> record) {
            record.headers().add("seen", "yes".getBytes());
            context.forward(record.withValue(record.value() + "!").withTimestamp(record.timestamp() + 1));
            if (record.value() != null && even(record.value())) {
                context.forward(record.withValue("again"));
            }
        }
    }

    static void processors() {
        put("process", b -> {
            b.addStateStore(Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore("recent"), S, S));
            left(b).process(() -> new Recent(true), "recent").to("out", P);
        });
        put("process_windows", b -> {
            b.addStateStore(Stores.windowStoreBuilder(Stores.inMemoryWindowStore("windows", ms(200), ms(20), false), S, S));
            b.addStateStore(Stores.sessionStoreBuilder(Stores.inMemorySessionStore("sessions", ms(150)), S, S));
            final KStream<String, String> found = left(b).process(Sessions::new, Named.as("sessions-processor"), "windows", "sessions");
            found.mapValues(v -> v, Named.as("even")).to("out", P);
            found.mapValues(v -> v, Named.as("odd")).to("out2", P);
        });
        put("process_values", b -> left(b).processValues(Headed::new).to("out", P));
        put("process_then_count", b -> {
            b.addStateStore(Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore("recent"), S, S));
            left(b).process(() -> new Recent(false), "recent").groupByKey(G).count().toStream().to("out", Produced.with(S, L));
        });
    }

    static {
        stateless();
        tables();
        aggregations();
        windows();
        suppression();
        tableJoins();
        streamJoins();
        versioned();
        processors();
    }

    private Topologies() {
    }
}

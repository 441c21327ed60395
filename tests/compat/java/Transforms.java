import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.transforms.Transformation;

/** Applies one of Kafka's transforms to each line: a class, its configuration and a value with or without a schema. */
public class Transforms {
    static final ObjectMapper JSON = new ObjectMapper();

    static JsonConverter converter(boolean schemas) {
        JsonConverter made = new JsonConverter();
        made.configure(Map.of("schemas.enable", schemas ? "true" : "false", "converter.type", "value"));
        return made;
    }

    static JsonNode shown(boolean schemas, org.apache.kafka.connect.data.Schema schema, Object value) throws Exception {
        byte[] data = converter(schemas).fromConnectData("t", schema, value);
        return data == null ? null : JSON.readTree(data);
    }

    public static void main(String[] words) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                apply(JSON.readTree(line), answer);
            } catch (Exception error) {
                answer.removeAll();
                answer.put("error", error.toString());
            }
            System.out.println(answer);
        }
    }

    @SuppressWarnings("unchecked")
    static void apply(JsonNode given, ObjectNode answer) throws Exception {
        boolean schemas = given.get("schemas").asBoolean();
        SchemaAndValue value = converter(schemas).toConnectData("t", JSON.writeValueAsBytes(given.get("value")));
        Map<String, String> config = new HashMap<>();
        given.get("config").fields().forEachRemaining(each -> config.put(each.getKey(), each.getValue().asText()));
        Transformation<SinkRecord> transform = (Transformation<SinkRecord>)
            Class.forName("org.apache.kafka.connect.transforms." + given.get("class").asText())
                .getDeclaredConstructor().newInstance();
        transform.configure(config);
        SinkRecord record = new SinkRecord("db.orders", 3, null, null, value.schema(), value.value(), 9L,
            1767323045678L, TimestampType.CREATE_TIME);
        SinkRecord made = transform.apply(record);
        if (made == null) {
            answer.put("dropped", true);
            return;
        }
        answer.put("topic", made.topic());
        answer.set("value", shown(schemas, made.valueSchema(), made.value()));
        answer.set("key", shown(schemas, made.keySchema(), made.key()));
        ObjectNode headers = answer.putObject("headers");
        for (var header : made.headers()) headers.set(header.key(), shown(schemas, header.schema(), header.value()));
    }
}

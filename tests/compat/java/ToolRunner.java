// Runs one of Kafka's command-line tools again and again in one virtual machine, as if each were a process of its own.
//
//   ToolRunner MAIN_CLASS        each line of standard input is the words of one call
//
// Prints a JSON object per call: the exit code, and what was said on both outputs. kafka_tools.py compiles and runs it.

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.utils.Exit;

public final class ToolRunner {
    private static final class Ended extends RuntimeException {
        private final int code;

        Ended(int code) {
            this.code = code;
        }
    }

    public static void main(String[] arguments) throws Exception {
        Method tool = Class.forName(arguments[0]).getMethod("main", String[].class);
        Exit.setExitProcedure((code, message) -> {
            throw new Ended(code);
        });
        var json = new ObjectMapper();
        PrintStream out = System.out;
        PrintStream errors = System.err;
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            var said = new ByteArrayOutputStream();
            var saidOfErrors = new ByteArrayOutputStream();
            System.setOut(new PrintStream(said, true, StandardCharsets.UTF_8));
            System.setErr(new PrintStream(saidOfErrors, true, StandardCharsets.UTF_8));
            int code = 0;
            try {
                tool.invoke(null, (Object) line.split(" "));
            } catch (InvocationTargetException error) {
                if (!(error.getCause() instanceof Ended ended)) {
                    throw error;
                }
                code = ended.code;
            } finally {
                System.setOut(out);
                System.setErr(errors);
            }
            ObjectNode row = json.createObjectNode();
            row.put("code", code);
            row.put("text", said.toString(StandardCharsets.UTF_8) + saidOfErrors.toString(StandardCharsets.UTF_8));
            out.println(json.writeValueAsString(row));
            out.flush();
        }
    }
}

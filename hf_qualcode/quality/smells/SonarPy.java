import com.sonar.sslr.api.RecognitionException;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.SynchronousQueue;
import org.sonar.api.SonarProduct;
import org.sonar.check.Rule;
import org.sonar.plugins.python.api.PythonCheck;
import org.sonar.plugins.python.api.PythonFile;
import org.sonar.plugins.python.api.PythonSubscriptionCheck;
import org.sonar.plugins.python.api.PythonVisitorContext;
import org.sonar.plugins.python.api.tree.FileInput;
import org.sonar.python.SubscriptionVisitor;
import org.sonar.python.caching.CacheContextImpl;
import org.sonar.python.checks.CheckList;
import org.sonar.python.parser.PythonParser;
import org.sonar.python.semantic.ProjectLevelSymbolTable;
import org.sonar.python.semantic.v2.TypeShed;
import org.sonar.python.tree.PythonTreeMaker;

/**
 * Runs the checks of Sonar's Python analyzer on programs that come over a pipe.
 *
 * <p>Arguments: keys of the rules to run. First line of stdout: {"ready": number of checks}. Then, for each request on
 * stdin (a length of four bytes, big-endian, then so many bytes of UTF-8) one line of stdout, ASCII only:
 * {"findings": [[rule, line, message], ...]} in no particular order, {"parse_error": why} or {"error": why}. Line 0
 * stands for the whole file.
 *
 * <p>Every program is analysed alone, by checks of its own, so nothing of one program reaches the result of another.
 * Comments that suppress findings (NOSONAR) have no effect: in a scan it is the server that obeys them.
 */
public final class SonarPy {
  /** Parser and checks call themselves once a level of nesting. Only what is used of it takes memory. */
  private static final long STACK_BYTES = 256L << 20;

  /** Some rules look at the name of the file, so it is the same for every program. */
  private record Program(String content) implements PythonFile {
    @Override
    public String fileName() {
      return "program.py";
    }

    @Override
    public URI uri() {
      return URI.create("file:///program.py");
    }

    @Override
    public String key() {
      return "program.py";
    }
  }

  private final Map<Class<?>, String> ruleOfCheck = new LinkedHashMap<>();
  /** The symbols of other files: there are none. */
  private final ProjectLevelSymbolTable project = ProjectLevelSymbolTable.empty();
  /** The stubs of Python's library, read once, as a scan of a project does; they would be most of the time. */
  private final TypeShed typeShed = new TypeShed(project);

  private SonarPy(Set<String> ruleKeys) {
    for (Class<?> check : CheckList.getChecks()) {
      Rule rule = check.getAnnotation(Rule.class);
      if (rule != null && ruleKeys.contains(rule.key())) {
        ruleOfCheck.put(check, rule.key());
      }
    }
  }

  public static void main(String[] ruleKeys) throws Exception {
    OutputStream answers = new FileOutputStream(FileDescriptor.out);
    System.setOut(System.err); // so that whatever a library prints is not taken for an answer
    SonarPy analyzer = new SonarPy(Set.of(ruleKeys));
    SynchronousQueue<String> requests = new SynchronousQueue<>();
    Thread worker = new Thread(null, () -> answerAll(analyzer, requests, answers), "analysis", STACK_BYTES);
    worker.setDaemon(true);
    worker.start();
    // This thread goes on reading while the other works: it learns that who asks has gone, even when a check hangs.
    DataInputStream input = new DataInputStream(new FileInputStream(FileDescriptor.in));
    try {
      while (true) {
        byte[] program = new byte[input.readInt()];
        input.readFully(program);
        requests.put(new String(program, StandardCharsets.UTF_8));
      }
    } catch (EOFException end) {
      Runtime.getRuntime().halt(0);
    }
  }

  private static void answerAll(SonarPy analyzer, SynchronousQueue<String> requests, OutputStream answers) {
    try {
      write(answers, "{\"ready\": " + analyzer.ruleOfCheck.size() + "}");
      while (true) {
        write(answers, analyzer.answer(requests.take()));
      }
    } catch (IOException | InterruptedException | OutOfMemoryError end) {
      System.err.println(end);
      Runtime.getRuntime().halt(3);
    }
  }

  private static void write(OutputStream answers, String line) throws IOException {
    answers.write((line + "\n").getBytes(StandardCharsets.US_ASCII));
    answers.flush();
  }

  private String answer(String content) {
    try {
      return "{\"findings\": [" + String.join(", ", findings(content)) + "]}";
    } catch (RecognitionException error) {
      return "{\"parse_error\": " + quoted(String.valueOf(error.getMessage())) + "}";
    } catch (RuntimeException | ReflectiveOperationException | StackOverflowError error) {
      return "{\"error\": " + quoted(error.toString()) + "}";
    }
  }

  private List<String> findings(String content) throws ReflectiveOperationException {
    FileInput tree = new PythonTreeMaker().fileInput(PythonParser.create().parse(content));
    PythonVisitorContext context =
        new PythonVisitorContext(
            tree,
            new Program(content),
            null,
            "",
            project,
            typeShed,
            CacheContextImpl.dummyCache(),
            SonarProduct.SONARQUBE);
    Map<PythonCheck, String> rules = new IdentityHashMap<>();
    List<PythonSubscriptionCheck> subscribed = new ArrayList<>();
    for (Map.Entry<Class<?>, String> entry : ruleOfCheck.entrySet()) {
      PythonCheck check = (PythonCheck) entry.getKey().getDeclaredConstructor().newInstance();
      rules.put(check, entry.getValue());
      if (check instanceof PythonSubscriptionCheck subscriber) {
        subscribed.add(subscriber);
      } else {
        check.scanFile(context);
      }
    }
    SubscriptionVisitor.analyze(subscribed, context);
    List<String> found = new ArrayList<>();
    for (PythonCheck.PreciseIssue issue : context.getIssues()) {
      String message = quoted(String.valueOf(issue.primaryLocation().message()));
      String rule = quoted(rules.get(issue.check()));
      found.add("[" + rule + ", " + issue.primaryLocation().startLine() + ", " + message + "]");
    }
    return found;
  }

  private static String quoted(String text) {
    StringBuilder json = new StringBuilder("\"");
    for (char letter : text.toCharArray()) {
      if (letter < ' ' || letter > '~' || letter == '"' || letter == '\\') {
        json.append(String.format("\\u%04x", (int) letter));
      } else {
        json.append(letter);
      }
    }
    return json.append('"').toString();
  }
}

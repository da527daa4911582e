import io.delta.storage.LogStore;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.FileAlreadyExistsException;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/** One writer of a Delta log: LogWriter CLASS LOG NAME COMMITS. Its settings, then an empty line, come on standard input. */
public class LogWriter {
  public static void main(String[] arguments) throws Exception {
    BufferedReader told = new BufferedReader(new InputStreamReader(System.in));
    Configuration conf = new Configuration();
    for (String line = told.readLine(); line != null && !line.isEmpty(); line = told.readLine()) {
      String[] pair = line.split("=", 2);
      conf.set(pair[0], pair[1]);
    }
    LogStore store =
        (LogStore) Class.forName(arguments[0]).getConstructor(Configuration.class).newInstance(conf);
    new Path(arguments[1]).getFileSystem(conf).exists(new Path(arguments[1]));
    System.out.println("ready");
    told.readLine();
    long version = 0;
    for (int number = 0; number < Integer.parseInt(arguments[3]); number++) {
      String content = arguments[2] + " " + number;
      for (boolean committed = false; !committed; version++) {
        Path file = new Path(String.format("%s/%020d.json", arguments[1], version));
        try {
          store.write(file, List.of(content).iterator(), false, conf);
          System.out.println(version + " " + content);
          committed = true;
        } catch (FileAlreadyExistsException lost) {
          continue;
        }
      }
    }
  }
}

package lakewarden;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.AwsCredentials;
import software.amazon.awssdk.auth.credentials.AwsCredentialsProvider;
import software.amazon.awssdk.auth.credentials.AwsSessionCredentials;
import software.amazon.awssdk.core.exception.SdkClientException;

/**
 * Credentials for S3A that lie in files and may be rotated there: S3A asks before every request, and a file that is another
 * one than before is read again. So a session goes on with the new key, also in the middle of a job.
 *
 * <p>{@code fs.s3a.lakewarden.secret.key.file} (and so for {@code access.key} and {@code session.token}) names the file.
 * Where it cannot be read, on executors that have it not mounted, what {@code fs.s3a.secret.key} says counts.
 */
public final class FileCredentialsProvider implements AwsCredentialsProvider {
  private static final String NAMED = "fs.s3a.lakewarden.";
  private static final String SAID = "fs.s3a.";

  private final Configuration conf;
  private final Map<String, Object> stamps = new HashMap<>();
  private final Map<String, String> contents = new HashMap<>();

  /** S3A makes one per file system; {@code conf} holds the options of its bucket under the names of all. */
  public FileCredentialsProvider(URI uri, Configuration conf) {
    this.conf = conf;
  }

  @Override
  public synchronized AwsCredentials resolveCredentials() {
    String key = value("access.key");
    String secret = value("secret.key");
    String token = value("session.token");
    if (key.isEmpty() || secret.isEmpty()) {
      throw SdkClientException.create("Neither a file nor a setting has the key for S3.");
    }
    return token.isEmpty()
        ? AwsBasicCredentials.create(key, secret)
        : AwsSessionCredentials.create(key, secret, token);
  }

  private String value(String name) {
    String file = conf.getTrimmed(NAMED + name + ".file", "");
    String content = file.isEmpty() ? "" : content(Path.of(file));
    return content.isEmpty() ? conf.getTrimmed(SAID + name, "") : content;
  }

  /** What a file says now; "" where it cannot be read. */
  private String content(Path file) {
    try {
      BasicFileAttributes now = Files.readAttributes(file, BasicFileAttributes.class);
      Object stamp = List.of(now.lastModifiedTime(), now.size(), String.valueOf(now.fileKey()));
      if (!stamp.equals(stamps.get(file.toString()))) {
        contents.put(file.toString(), Files.readString(file).strip());
        stamps.put(file.toString(), stamp);
      }
      return contents.get(file.toString());
    } catch (IOException | SecurityException error) {
      return "";
    }
  }
}

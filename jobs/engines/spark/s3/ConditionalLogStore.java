package lakewarden;

import io.delta.storage.HadoopFileSystemLogStore;
import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.Arrays;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Commits to Delta logs on S3, each created only if there is none of its version: S3A sends If-None-Match, and the store
 * lets one of two writers win, in whatever process or engine they are. Delta's own S3SingleDriverLogStore has a lock in its
 * process instead, under which two processes overwrite each other's commits.
 *
 * <p>A request whose answer is lost may have done its work, and its repetition then meets what it wrote itself. So
 * whatever goes wrong is settled by what is there: our own content means that the commit was made. Commits of Delta carry
 * a transaction id, so no two have the same content.
 */
public final class ConditionalLogStore extends HadoopFileSystemLogStore {
  private static final String ONLY_IF_ABSENT = "fs.option.create.conditional.overwrite";
  private static final String WITHOUT_PROBES = "fs.s3a.create.performance";

  public ConditionalLogStore(Configuration conf) {
    super(conf);
  }

  @Override
  public void write(Path path, Iterator<String> lines, Boolean overwrite, Configuration conf)
      throws IOException {
    FileSystem files = path.getFileSystem(conf);
    Path file = files.makeQualified(path);
    byte[] content = joined(lines);
    FSDataOutputStreamBuilder<?, ?> builder = files.createFile(file).recursive().overwrite(overwrite);
    if (overwrite) {
      put(builder, content);
      return;
    }
    // A file system that does not know the condition refuses it, and so the commit: nothing is written without.
    builder.must(ONLY_IF_ABSENT, true);
    builder.opt(WITHOUT_PROBES, true);
    try {
      put(builder, content);
    } catch (IOException error) {
      settle(files, file, content, error);
    }
  }

  @Override
  public Boolean isPartialWriteVisible(Path path, Configuration conf) {
    return false; // an object is there when its upload has ended
  }

  private static void put(FSDataOutputStreamBuilder<?, ?> builder, byte[] content) throws IOException {
    FSDataOutputStream out = (FSDataOutputStream) builder.build();
    try {
      out.write(content);
    } catch (IOException | RuntimeException error) {
      out.abort(); // closing would complete the upload
      throw error;
    }
    out.close();
  }

  /** Return if the commit was made, and say what happened if not. */
  private static void settle(FileSystem files, Path file, byte[] content, IOException error)
      throws IOException {
    byte[] there;
    try (InputStream in = files.open(file)) {
      there = in.readAllBytes();
    } catch (FileNotFoundException absent) {
      throw error;
    } catch (IOException unknown) {
      error.addSuppressed(unknown);
      throw error;
    }
    if (Arrays.equals(there, content)) {
      return;
    }
    FileAlreadyExistsException lost = new FileAlreadyExistsException(file.toString());
    lost.initCause(error);
    throw lost;
  }

  private static byte[] joined(Iterator<String> lines) {
    ByteArrayOutputStream content = new ByteArrayOutputStream();
    while (lines.hasNext()) {
      content.writeBytes((lines.next() + "\n").getBytes(StandardCharsets.UTF_8));
    }
    return content.toByteArray();
  }
}

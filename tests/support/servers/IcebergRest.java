import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.AlreadyExistsException;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.exceptions.NoSuchNamespaceException;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.rest.CatalogHandlers;
import org.apache.iceberg.rest.RESTCatalogProperties;
import org.apache.iceberg.rest.RESTSerializers;
import org.apache.iceberg.rest.requests.CreateNamespaceRequest;
import org.apache.iceberg.rest.requests.CreateTableRequest;
import org.apache.iceberg.rest.requests.RenameTableRequest;
import org.apache.iceberg.rest.requests.UpdateTableRequest;
import org.apache.iceberg.rest.responses.LoadTableResponse;
import org.apache.iceberg.shaded.com.fasterxml.jackson.annotation.JsonAutoDetect;
import org.apache.iceberg.shaded.com.fasterxml.jackson.annotation.PropertyAccessor;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.DeserializationFeature;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.PropertyNamingStrategies;

/** Iceberg's own handlers of its REST protocol behind Java's own HTTP server: `java IcebergRest.java PORT WAREHOUSE DATABASE`. */
public class IcebergRest {
  static final String TOKEN = "the-token";
  static final ObjectMapper JSON = new ObjectMapper();
  static final JdbcCatalog CATALOG = new JdbcCatalog();

  record Answer(int status, Object body, String etag) {}

  public static void main(String[] arguments) throws Exception {
    JSON.setVisibility(PropertyAccessor.FIELD, JsonAutoDetect.Visibility.ANY);
    JSON.configure(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, false);
    JSON.setPropertyNamingStrategy(new PropertyNamingStrategies.KebabCaseStrategy());
    RESTSerializers.registerAll(JSON);
    CATALOG.setConf(new Configuration());
    CATALOG.initialize(
        "rest",
        Map.of(
            "uri", arguments[2],
            "warehouse", arguments[1],
            "jdbc.schema-version", "V1"));
    int port = Integer.parseInt(arguments[0]);
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
    server.createContext("/", IcebergRest::handle);
    server.setExecutor(Executors.newFixedThreadPool(8));
    server.start();
  }

  static void handle(HttpExchange exchange) {
    try (exchange) {
      String body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
      Answer answer;
      try {
        answer = answer(exchange, body);
      } catch (NoSuchTableException | NoSuchNamespaceException error) {
        answer = failed(404, error);
      } catch (CommitFailedException | AlreadyExistsException error) {
        answer = failed(409, error);
      } catch (Exception error) {
        error.printStackTrace();
        answer = failed(500, error);
      }
      if (answer.etag() != null) {
        exchange.getResponseHeaders().add("ETag", answer.etag());
      }
      exchange.getResponseHeaders().add("Content-Type", "application/json");
      if (answer.body() == null) {
        exchange.sendResponseHeaders(answer.status(), -1);
        return;
      }
      byte[] data = JSON.writeValueAsBytes(answer.body());
      exchange.sendResponseHeaders(answer.status(), data.length);
      exchange.getResponseBody().write(data);
    } catch (Exception error) {
      error.printStackTrace();
    }
  }

  static Answer answer(HttpExchange exchange, String body) throws Exception {
    URI uri = exchange.getRequestURI();
    String method = exchange.getRequestMethod();
    if (uri.getPath().equals("/v1/oauth/tokens")) {
      boolean known = body.contains("client_secret=hush");
      return known
          ? new Answer(200, Map.of("access_token", TOKEN, "token_type", "bearer", "expires_in", 3600), null)
          : new Answer(401, Map.of("error", "invalid_client"), null);
    }
    if (!("Bearer " + TOKEN).equals(exchange.getRequestHeaders().getFirst("Authorization"))) {
      return error(401, "NotAuthorizedException", "Who are you?");
    }
    if (uri.getPath().equals("/v1/config")) {
      return new Answer(200, Map.of("defaults", Map.of(), "overrides", Map.of("prefix", "lake")), null);
    }
    List<String> parts = new ArrayList<>();
    for (String part : uri.getRawPath().substring("/v1/lake/".length()).split("/")) {
      parts.add(URLDecoder.decode(part, StandardCharsets.UTF_8));
    }
    if (parts.equals(List.of("tables", "rename"))) {
      CatalogHandlers.renameTable(CATALOG, JSON.readValue(body, RenameTableRequest.class));
      return new Answer(204, null, null);
    }
    Namespace namespace =
        parts.size() > 1 ? Namespace.of(parts.get(1).split("\u001f")) : Namespace.empty();
    return switch (method + " " + parts.size()) {
      case "GET 1" -> new Answer(200, CatalogHandlers.listNamespaces(CATALOG, above(uri)), null);
      case "POST 1" -> new Answer(
          200, CatalogHandlers.createNamespace(CATALOG, JSON.readValue(body, CreateNamespaceRequest.class)), null);
      case "GET 2" -> new Answer(200, CatalogHandlers.loadNamespace(CATALOG, namespace), null);
      case "HEAD 2" -> {
        CatalogHandlers.namespaceExists(CATALOG, namespace);
        yield new Answer(204, null, null);
      }
      case "GET 3" -> new Answer(200, CatalogHandlers.listTables(CATALOG, namespace), null);
      case "POST 3" -> created(namespace, JSON.readValue(body, CreateTableRequest.class));
      default -> ofTable(method, TableIdentifier.of(namespace, parts.get(3)), exchange, body, parts.size());
    };
  }

  static Answer ofTable(String method, TableIdentifier table, HttpExchange exchange, String body, int depth)
      throws Exception {
    if (depth > 4) { // metrics
      return new Answer(204, null, null);
    }
    switch (method) {
      case "GET":
        LoadTableResponse loaded =
            CatalogHandlers.loadTable(CATALOG, table, RESTCatalogProperties.SnapshotMode.ALL);
        String etag = "\"" + loaded.tableMetadata().metadataFileLocation() + "\"";
        boolean same = etag.equals(exchange.getRequestHeaders().getFirst("If-None-Match"));
        return same ? new Answer(304, null, etag) : new Answer(200, loaded, etag);
      case "HEAD":
        CatalogHandlers.tableExists(CATALOG, table);
        return new Answer(204, null, null);
      case "POST":
        UpdateTableRequest request = JSON.readValue(body, UpdateTableRequest.class);
        return new Answer(200, CatalogHandlers.updateTable(CATALOG, table, request), null);
      case "DELETE":
        CatalogHandlers.dropTable(CATALOG, table);
        return new Answer(204, null, null);
      default:
        return error(405, "UnsupportedOperationException", method);
    }
  }

  static Answer created(Namespace namespace, CreateTableRequest request) {
    return request.stageCreate()
        ? new Answer(200, CatalogHandlers.stageTableCreate(CATALOG, namespace, request), null)
        : new Answer(200, CatalogHandlers.createTable(CATALOG, namespace, request), null);
  }

  static Namespace above(URI uri) {
    String query = uri.getQuery();
    return query == null || !query.startsWith("parent=")
        ? Namespace.empty()
        : Namespace.of(query.substring("parent=".length()).split("\u001f"));
  }

  static Answer failed(int status, Exception error) {
    return error(status, error.getClass().getSimpleName(), String.valueOf(error.getMessage()));
  }

  static Answer error(int status, String type, String message) {
    return new Answer(status, Map.of("error", Map.of("message", message, "type", type, "code", status)), null);
  }
}

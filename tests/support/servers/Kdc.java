import java.io.File;
import org.apache.kerby.kerberos.kerb.server.SimpleKdcServer;

/** A key distribution centre on loopback: FOLDER REALM PORT PRINCIPAL..., each with a keytab of its name in the folder. */
class Kdc {
  public static void main(String[] args) throws Exception {
    File folder = new File(args[0]);
    SimpleKdcServer kdc = new SimpleKdcServer();
    kdc.setWorkDir(folder);
    kdc.setKdcHost("127.0.0.1");
    kdc.setKdcRealm(args[1]);
    kdc.setKdcTcpPort(Integer.parseInt(args[2]));
    kdc.setAllowUdp(false);
    kdc.init();
    for (int i = 3; i < args.length; i++) {
      kdc.createPrincipal(args[i]);
      kdc.exportPrincipal(args[i], new File(folder, args[i].replace('/', '-') + ".keytab"));
    }
    kdc.start();
    System.out.println("ready");
    Thread.currentThread().join();
  }
}

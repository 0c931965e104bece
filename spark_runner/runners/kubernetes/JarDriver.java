package orchestrator;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.management.ManagementFactory;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.regex.Pattern;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.auth.login.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.core.config.Configurator;
import org.apache.spark.SparkContext;
import org.apache.spark.deploy.SparkHadoopUtil;
import org.apache.spark.SparkStageInfo;
import org.apache.spark.util.ShutdownHookManager;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.client.ZKClientConfig;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Id;
import org.apache.zookeeper.data.Stat;

/**
 * Runs the main class of a jar under the rules of its attempt, in a pod that has only Java and Spark.
 *
 * <p>It does the work of spark_runner/driver/driver.py and spark_runner/driver/attempt_holder.py without Python. Spark's own Janino
 * compiles it in the pod, without lambdas, inferred types and multi-catch. Janino searches classes without a package
 * first, so no name here may equal that of a user's class.
 */
public final class JarDriver {
    public static void main(String[] arguments) throws Exception {
        JsonNode plan = DriverJson.read(Files.readAllBytes(Paths.get(arguments[0])));
        System.setProperty("orchestrator.run", plan.get("run").asText());
        System.setProperty("orchestrator.incarnation", plan.get("incarnation").asText());
        AttemptHolder holder = new AttemptHolder(plan);
        holder.take();
        ShutdownHookManager.inShutdown(); // loaded now: once the JVM ends, its class can no longer be loaded
        DriverFolder.settle(plan.has("directory") ? plan.get("directory").asText() : "");
        ObjectNode outcome = DriverProgram.run(plan);
        if ("failed".equals(outcome.get("state").asText()) && ShutdownHookManager.inShutdown()) {
            // An outside request ends this JVM and has stopped its Spark: the exit code is the outcome.
            System.err.println("this driver ends without an outcome: its JVM is being ended");
            Thread.sleep(Long.MAX_VALUE);
        }
        DriverOutcome.write(outcome);
        holder.end(outcome);
        if (outcome.get("exit_code").asInt() != 0) {
            System.exit(outcome.get("exit_code").asInt());
        }
    }
}

/** JSON in the form stored in nodes. */
final class DriverJson {
    static final ObjectMapper MAPPER = new ObjectMapper();

    static ObjectNode read(byte[] data) throws IOException {
        return (ObjectNode) MAPPER.readTree(data);
    }

    static byte[] write(ObjectNode document) throws IOException {
        return MAPPER.writeValueAsString(document).getBytes(StandardCharsets.UTF_8);
    }

    static String timestamp() {
        return DateTimeFormatter.ofPattern("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'").withZone(ZoneOffset.UTC)
            .format(Instant.now());
    }
}

/** CLOCK_BOOTTIME: System.nanoTime stops while the machine is suspended. */
final class BootTime {
    static final Path UPTIME = Paths.get("/proc/uptime"); // proc_uptime(5): seconds, including suspended time

    static long ms() {
        try {
            String words = new String(Files.readAllBytes(UPTIME), StandardCharsets.US_ASCII);
            return (long) (Double.parseDouble(words.substring(0, words.indexOf(' '))) * 1000);
        } catch (Exception none) { // without this clock the other one must do
            return System.nanoTime() / 1000000L;
        }
    }
}

/** Spark's relative paths refer to the folder of the definition; without it in the pod they are errors. */
final class DriverFolder {
    static void settle(String directory) throws IOException {
        String folder = directory;
        if (directory.isEmpty() || !new File(directory).isDirectory()) {
            String words = "relative paths mean the folder of the definition, which is not in this pod";
            File file = new File("/dev/null", words);
            try { // nothing can be created below a file, and Spark's errors name the file
                File place = Files.createTempDirectory("orchestrator").toFile();
                place.deleteOnExit();
                file = new File(place, words);
                file.createNewFile();
                file.deleteOnExit();
            } catch (IOException unwritable) {
                System.err.println("relative paths will be refused without a word of why: " + unwritable);
            }
            folder = file.getPath() + directory;
        }
        System.setProperty("user.dir", folder); // new file systems start there
        FileSystem.getLocal(new org.apache.hadoop.conf.Configuration())
            .setWorkingDirectory(new org.apache.hadoop.fs.Path("file", null, folder));
        refuseElsewhere();
    }

    /** Like folder.py: if another file system is the default, a relative path has no meaning. */
    private static void refuseElsewhere() {
        FileSystem found;
        try {
            found = FileSystem.get(SparkHadoopUtil.get().conf());
        } catch (Exception unusable) {
            return; // no other one works
        }
        String scheme = found.getUri().getScheme();
        if ("file".equals(scheme)) {
            return;
        }
        String words = "relative paths mean a folder of this host, and the default file system is " + scheme;
        try {
            found.setWorkingDirectory(new org.apache.hadoop.fs.Path("file", null, "/dev/null/" + words));
        } catch (RuntimeException refused) { // it accepts only its own paths, like viewfs
            found.setWorkingDirectory(new org.apache.hadoop.fs.Path("/.reserved/" + words));
        }
    }
}

/** The user's main method and its outcome. */
final class DriverProgram {
    static final int MAX_MESSAGE_CHARACTERS = 4000;
    static final int MAX_STACK_CHARACTERS = 8000;

    static ObjectNode run(JsonNode plan) {
        JsonNode jar = plan.get("jar");
        String name = jar.get("class").asText();
        String[] arguments = (String[]) DriverJson.MAPPER.convertValue(jar.get("arguments"), String[].class);
        Method main;
        try {
            ClassLoader loader = Thread.currentThread().getContextClassLoader();
            main = Class.forName(name, true, loader).getMethod("main", new Class[] {String[].class});
        } catch (ClassNotFoundException error) {
            String words = "there is no class " + name + " in the jars of the job";
            return failed("definition", "ClassNotFoundException", words, "");
        } catch (NoSuchMethodException error) {
            return failed("definition", "NoSuchMethodException", name + " has no public static main(String[])", "");
        } catch (Throwable error) { // its static initialization
            return thrown(plan, error);
        }
        try {
            main.invoke(null, new Object[] {arguments});
        } catch (InvocationTargetException error) {
            return thrown(plan, error.getCause());
        } catch (Throwable error) {
            return thrown(plan, error);
        }
        ObjectNode outcome = DriverJson.MAPPER.createObjectNode();
        outcome.put("state", "succeeded");
        outcome.put("exit_code", 0);
        return outcome;
    }

    static ObjectNode thrown(JsonNode plan, Throwable error) {
        StringWriter stack = new StringWriter();
        error.printStackTrace(new PrintWriter(stack, true));
        String name = error.getClass().getName();
        String message = error.getMessage() == null ? name : error.getMessage();
        String kind = "user";
        for (String each : new String[] {"memory", "infrastructure", "definition"}) {
            if (Pattern.compile(plan.get("driver").get(each).asText()).matcher(name + ": " + message).find()) {
                kind = each;
                break;
            }
        }
        ObjectNode outcome = failed(kind, name, message, stack.toString());
        String words = name + ": " + message;
        JsonNode shortages = plan.get("driver").get("short_of");
        for (int number = 0; kind.equals("memory") && number < shortages.size(); number++) {
            JsonNode each = (JsonNode) shortages.get(number); // Janino needs the cast
            if (Pattern.compile(each.get("pattern").asText()).matcher(words).find()) {
                ((ObjectNode) outcome.get("error")).put("short_of", each.get("name").asText());
                break;
            }
        }
        return outcome;
    }

    static ObjectNode failed(String kind, String type, String message, String stack) {
        System.err.println(stack.isEmpty() ? message : stack);
        ObjectNode error = DriverJson.MAPPER.createObjectNode();
        error.put("class", kind);
        error.put("type", type);
        error.put("message", message.substring(0, Math.min(message.length(), MAX_MESSAGE_CHARACTERS)));
        if (!stack.isEmpty()) {
            error.put("traceback", stack.substring(Math.max(0, stack.length() - MAX_STACK_CHARACTERS)));
        }
        ObjectNode outcome = DriverJson.MAPPER.createObjectNode();
        outcome.put("state", "failed");
        outcome.put("exit_code", 1);
        outcome.set("error", error);
        return outcome;
    }
}

/** The part of an outcome in the container's status: the verdict if ZooKeeper does not return. */
final class DriverOutcome {
    static final int MAX_CHARACTERS = 300; // each may become twelve bytes of JSON, and the limit is 4096

    static void write(ObjectNode outcome) {
        String file = System.getenv("ORCHESTRATOR_TERMINATION_LOG");
        if (file == null) {
            return;
        }
        ObjectNode brief = outcome.deepCopy();
        ObjectNode error = (ObjectNode) brief.get("error");
        if (error != null) {
            error.remove("traceback");
            String message = error.get("message").asText();
            error.put("message", message.substring(0, Math.min(message.length(), MAX_CHARACTERS)));
        }
        try {
            Files.write(Paths.get(file), DriverJson.write(brief));
        } catch (IOException unwritable) {
            System.err.println("the outcome was not kept in " + file + ": " + unwritable);
        }
    }
}

/** The state of Spark in this JVM, once it has started. */
final class DriverSpark {
    static final int MAX_STAGES = 10;

    private final ObjectNode application = DriverJson.MAPPER.createObjectNode();

    /** The last known application: most programs stop Spark as their last action. */
    synchronized ObjectNode application() {
        SparkContext context = context();
        if (context != null && application.isEmpty()) {
            application.put("application_id", context.applicationId());
            if (context.uiWebUrl().isDefined()) {
                application.put("ui", (String) context.uiWebUrl().get());
            }
        }
        return application;
    }

    /** The application and its active stages. */
    ObjectNode progress() {
        ObjectNode shown = application().deepCopy();
        SparkContext context = context();
        if (context == null) {
            return shown;
        }
        ArrayNode stages = shown.putArray("stages");
        int[] active = context.statusTracker().getActiveStageIds();
        for (int i = 0; i < Math.min(active.length, MAX_STAGES); i++) {
            scala.Option found = context.statusTracker().getStageInfo(active[i]);
            if (found.isDefined()) {
                SparkStageInfo stage = (SparkStageInfo) found.get();
                ObjectNode entry = stages.addObject();
                entry.put("stage", stage.stageId());
                entry.put("tasks", stage.numTasks());
                entry.put("done", stage.numCompletedTasks());
            }
        }
        return shown;
    }

    private static SparkContext context() {
        scala.Option active = org.apache.spark.SparkContext$.MODULE$.getActive();
        return active.isDefined() ? (SparkContext) active.get() : null;
    }
}

/** A session with ZooKeeper by the settings of the plan; a new one when the last has expired. */
final class DriverSession implements Watcher {
    private final JsonNode settings;
    private ZooKeeper client;

    DriverSession(JsonNode settings) {
        this.settings = settings;
        try {
            Configurator.setLevel("org.apache.zookeeper", Level.WARN); // else it logs the whole class path
        } catch (Throwable another) {
            System.err.println("logs are not written by Log4j here: " + another);
        }
    }

    public void process(WatchedEvent event) {
        // A poll every two seconds reads the orders, so no event is needed.
    }

    synchronized ZooKeeper client() throws IOException {
        if (client == null || !client.getState().isAlive()) {
            int timeout = (int) (settings.get("session_timeout").asDouble() * 1000);
            client = new ZooKeeper(settings.get("hosts").asText(), timeout, this, config());
            JsonNode digest = settings.get("digest");
            if (!digest.isNull()) {
                String login = digest.get("user").asText() + ":" + password(digest);
                client.addAuthInfo("digest", login.getBytes(StandardCharsets.UTF_8));
            }
        }
        return client;
    }

    List acl() {
        List entries = new ArrayList();
        JsonNode rights = settings.get("rights");
        for (int i = 0; i < rights.size(); i++) {
            JsonNode right = (JsonNode) rights.get(i);
            JsonNode perms = (JsonNode) right.get(0);
            JsonNode scheme = (JsonNode) right.get(1);
            JsonNode name = (JsonNode) right.get(2);
            entries.add(new ACL(perms.asInt(), new Id(scheme.asText(), name.asText())));
        }
        return entries.isEmpty() ? ZooDefs.Ids.OPEN_ACL_UNSAFE : entries;
    }

    synchronized void close() throws InterruptedException {
        if (client != null) {
            client.close();
        }
    }

    private ZKClientConfig config() throws IOException {
        ZKClientConfig config = new ZKClientConfig();
        long timeout = (long) (settings.get("call_timeout").asDouble() * 1000);
        config.setProperty("zookeeper.request.timeout", Long.toString(timeout));
        JsonNode tls = settings.get("tls");
        if (!tls.isNull()) {
            config.setProperty("zookeeper.client.secure", "true");
            config.setProperty("zookeeper.clientCnxnSocket", "org.apache.zookeeper.ClientCnxnSocketNetty");
            config.setProperty("zookeeper.ssl.hostnameVerification", tls.get("verify_hostname").asText());
            if (!tls.get("ca_file").asText().isEmpty()) {
                config.setProperty("zookeeper.ssl.trustStore.location", tls.get("ca_file").asText());
                config.setProperty("zookeeper.ssl.trustStore.type", "PEM");
            }
            if (!tls.get("certificate_file").asText().isEmpty()) {
                config.setProperty("zookeeper.ssl.keyStore.location", together(tls).toString());
                config.setProperty("zookeeper.ssl.keyStore.type", "PEM");
            }
        }
        JsonNode sasl = settings.get("sasl");
        config.setProperty("zookeeper.sasl.client", Boolean.toString(!sasl.isNull()));
        if (!sasl.isNull()) {
            config.setProperty("zookeeper.fips-mode", "false"); // else it refuses DIGEST-MD5, which the logins use
            Configuration.setConfiguration(new ZooKeeperLogin(sasl.get("user").asText(), password(sasl)));
        }
        return config;
    }

    /** Certificate and key in one private file, as ZooKeeper's client requires. */
    private static Path together(JsonNode tls) throws IOException {
        if (tls.get("key_file").asText().isEmpty()) {
            return Paths.get(tls.get("certificate_file").asText());
        }
        ByteArrayOutputStream both = new ByteArrayOutputStream();
        for (String name : new String[] {"certificate_file", "key_file"}) {
            both.write(Files.readAllBytes(Paths.get(tls.get(name).asText())));
            both.write('\n');
        }
        File file = File.createTempFile("zookeeper-", ".pem");
        file.deleteOnExit();
        file.setReadable(false, false);
        file.setReadable(true, true);
        Files.write(file.toPath(), both.toByteArray());
        return file.toPath();
    }

    private static String password(JsonNode login) throws IOException {
        if (!login.get("password").asText().isEmpty()) {
            return login.get("password").asText();
        }
        byte[] text = Files.readAllBytes(Paths.get(login.get("password_file").asText()));
        return new String(text, StandardCharsets.UTF_8).replaceAll("[\\r\\n]+$", "");
    }
}

/** The login of ZooKeeper's client; all other requests get the previous configuration's answer. */
final class ZooKeeperLogin extends Configuration {
    private final AppConfigurationEntry[] entries;
    private final Configuration others;

    ZooKeeperLogin(String user, String password) {
        Map options = new HashMap();
        options.put("username", user);
        options.put("password", password);
        String module = "org.apache.zookeeper.server.auth.DigestLoginModule";
        entries = new AppConfigurationEntry[] {
            new AppConfigurationEntry(module, AppConfigurationEntry.LoginModuleControlFlag.REQUIRED, options)
        };
        Configuration found = null;
        try {
            found = Configuration.getConfiguration();
        } catch (SecurityException none) {
            found = null; // no file of logins exists
        }
        others = found;
    }

    public AppConfigurationEntry[] getAppConfigurationEntry(String name) {
        if ("Client".equals(name)) {
            return entries;
        }
        return others == null ? null : others.getAppConfigurationEntry(name);
    }
}

/** This driver's hold on its attempt: takes it once, keeps it alive, follows orders, records the end. */
final class AttemptHolder extends Thread {
    static final long BEAT_MS = 2000; // between two polls for orders
    static final long TICK_MS = 250; // the delay until a new application is published
    static final int MAX_REFUSED = 20; // by an attempt that no driver has taken: another cause prevents it

    private final JsonNode plan;
    private final DriverSession link;
    private final String path;
    private final String driver = UUID.randomUUID().toString().replace("-", ""); // this JVM
    private final long leaseMs;
    private final DriverSpark spark = new DriverSpark();
    private final Object ending = new Object(); // held by the thread that ends the attempt: the program's or the poll's
    private volatile boolean ended = false;
    private volatile long contactMs = BootTime.ms(); // when the last answered request to ZooKeeper was sent
    private byte[] shown = new byte[0];

    AttemptHolder(JsonNode plan) {
        super("attempt-guard");
        this.plan = plan;
        this.link = new DriverSession(plan.get("zookeeper"));
        this.path = plan.get("attempt_path").asText();
        this.leaseMs = (long) (plan.get("lease_seconds").asDouble() * 1000);
        setDaemon(true);
    }

    /** Take the attempt by compare-and-set, or end this JVM before any user code has run. */
    void take() throws Exception {
        long patience = (long) (plan.get("zookeeper").get("call_timeout").asDouble() * 1000);
        int refused = 0;
        while (true) {
            try {
                AttemptNode node = read();
                if (node.is("started") && node.isOurs()) {
                    break;
                }
                if (!node.is("intent") || refused > MAX_REFUSED) {
                    leave(superseded(), "this driver ends without running anything: " + node.words());
                }
                ObjectNode taken = node.advanced("started");
                taken.put("incarnation", plan.get("incarnation").asText());
                taken.put("driver", driver);
                taken.put("started", DriverJson.timestamp());
                taken.put("pid", ManagementFactory.getRuntimeMXBean().getPid());
                patience = leaseMs; // from here on this driver may own it, which only ZooKeeper can answer
                List steps = new ArrayList();
                steps.add(Op.setData(path, DriverJson.write(taken), node.version));
                steps.add(Op.create(alive(), new byte[0], link.acl(), CreateMode.EPHEMERAL));
                link.client().multi(steps);
            } catch (KeeperException.NoAuthException error) {
                leave(superseded(), "this driver ends without running anything: " + path
                    + " is for the driver of another submission");
            } catch (KeeperException error) {
                refused += isConflict(error) ? 1 : 0;
                if (!isConflict(error) && awayMs() > patience) {
                    String words = "the attempt could not be taken, nothing was run: ";
                    leave(code("no_contact"), words + error.getMessage());
                }
                Thread.sleep(TICK_MS); // after a conflict the node shows whether the own reply was lost
            }
        }
        start();
        Thread lease = new Thread("attempt-lease") {
            public void run() {
                watchLease();
            }
        };
        lease.setDaemon(true);
        lease.start();
    }

    /** Record the outcome; if ZooKeeper is unreachable for the lease, the status of the pod replaces the record. */
    void end(ObjectNode outcome) throws Exception {
        synchronized (ending) {
            ended = true;
            String state = outcome.get("state").asText();
            long deadline = BootTime.ms() + leaseMs;
            while (BootTime.ms() < deadline) {
                try {
                    AttemptNode node = read();
                    if (node.is(state) && node.isOurs()) {
                        break;
                    }
                    if (!node.is("started") || !node.isOurs()) {
                        leave(superseded(), "the outcome was not recorded: " + node.words());
                    }
                    ObjectNode recorded = node.advanced(state);
                    recorded.put("ended", DriverJson.timestamp());
                    recorded.setAll(outcome);
                    recorded.setAll(spark.application());
                    recorded.putArray("tables");
                    close(node, recorded);
                    break;
                } catch (KeeperException error) {
                    if (!isConflict(error)) {
                        Thread.sleep(BEAT_MS);
                    }
                }
            }
        }
        link.close();
    }

    /** Poll for orders until the attempt has ended; no error ends the poll earlier. */
    public void run() {
        long looked = 0;
        boolean hasApplication = false;
        while (true) {
            try {
                Thread.sleep(TICK_MS);
                boolean isNews = !hasApplication && !spark.application().isEmpty();
                hasApplication = hasApplication || isNews;
                if (!isNews && System.nanoTime() - looked < BEAT_MS * 1000000L) {
                    continue;
                }
                looked = System.nanoTime();
                synchronized (ending) {
                    if (ended) {
                        return;
                    }
                    look();
                }
            } catch (KeeperException error) {
                if (!isConflict(error)) {
                    System.err.println("ZooKeeper does not answer: " + error.getMessage());
                }
            } catch (Throwable error) {
                System.err.println("looking for orders has failed: " + error);
            }
        }
    }

    private void look() throws Exception {
        AttemptNode node = read();
        if (!node.is("started") || !node.isOurs()) {
            leave(superseded(), "this driver ends: " + node.words());
        }
        if (isStopped()) {
            ObjectNode killed = node.advanced("killed");
            killed.put("ended", DriverJson.timestamp());
            killed.setAll(spark.application());
            close(node, killed);
            leave(code("killed"), "this driver ends: asked to stop");
        }
        Stat alive = link.client().exists(alive(), false);
        if (alive == null) { // it was deleted with an expired session
            List steps = new ArrayList();
            steps.add(Op.check(path, node.version));
            steps.add(Op.create(alive(), new byte[0], link.acl(), CreateMode.EPHEMERAL));
            link.client().multi(steps);
            shown = new byte[0];
        } else if (alive.getEphemeralOwner() != link.client().getSessionId()) {
            return; // of this driver's last session, and about to be deleted: the next poll handles it
        }
        ObjectNode progress = DriverJson.MAPPER.createObjectNode();
        progress.put("phase", "running " + plan.get("jar").get("class").asText());
        progress.setAll(spark.progress());
        byte[] text = DriverJson.write(progress);
        if (!Arrays.equals(text, shown)) {
            link.client().setData(alive(), text, -1);
            shown = text;
        }
    }

    private boolean isStopped() throws Exception {
        try {
            byte[] request = link.client().getData(plan.get("stop_path").asText(), false, null);
            return new String(request, StandardCharsets.UTF_8).contains(plan.get("run_key").asText());
        } catch (KeeperException.NoNodeException none) {
            return false;
        } catch (KeeperException.NoAuthException another) {
            return false; // it requests the end of another job: one for this job would be readable
        }
    }

    private void watchLease() {
        try {
            while (true) {
                Thread.sleep(TICK_MS);
                // The program may end at that time: recording the outcome has its own lease.
                if (awayMs() > leaseMs && !ended) {
                    String words = "this driver ends: no contact with ZooKeeper for longer than the lease";
                    leave(code("no_contact"), words);
                }
            }
        } catch (InterruptedException interrupted) {
            leave(code("no_contact"), "this driver ends: its lease is no longer checked");
        }
    }

    private void close(AttemptNode node, ObjectNode last) throws Exception {
        List steps = new ArrayList();
        steps.add(Op.setData(path, DriverJson.write(last), node.version));
        if (link.client().exists(alive(), false) != null) {
            steps.add(Op.delete(alive(), -1));
        }
        link.client().multi(steps);
    }

    private AttemptNode read() throws Exception {
        long asked = BootTime.ms();
        Stat stat = new Stat();
        byte[] data;
        try {
            data = link.client().getData(path, false, stat);
        } catch (KeeperException.NoNodeException gone) {
            leave(superseded(), "this driver ends: " + path + " is gone");
            throw gone;
        }
        contactMs = asked;
        return new AttemptNode(DriverJson.read(data), stat.getVersion(), driver);
    }

    private String alive() {
        return path + "/alive";
    }

    private long awayMs() {
        return BootTime.ms() - contactMs;
    }

    private int superseded() {
        return code("superseded");
    }

    private int code(String name) {
        return plan.get("driver").get(name).asInt();
    }

    /** End this JVM at once: the user's code must not continue. */
    private static void leave(int code, String words) {
        System.err.println(words);
        System.out.flush();
        System.err.flush();
        Runtime.getRuntime().halt(code);
    }

    private static boolean isConflict(KeeperException error) {
        KeeperException.Code code = error.code();
        return code == KeeperException.Code.BADVERSION || code == KeeperException.Code.NODEEXISTS
            || code == KeeperException.Code.NONODE;
    }
}

/** The attempt, as last read. */
final class AttemptNode {
    final ObjectNode document;
    final int version;
    private final String driver;

    AttemptNode(ObjectNode document, int version, String driver) {
        this.document = document;
        this.version = version;
        this.driver = driver;
    }

    boolean is(String state) {
        return state.equals(document.get("state").asText());
    }

    boolean isOurs() {
        return driver.equals(document.path("driver").asText());
    }

    ObjectNode advanced(String state) {
        ObjectNode copy = document.deepCopy();
        copy.put("state", state);
        return copy;
    }

    String words() {
        String taken = document.path("incarnation").asText();
        String by = taken.isEmpty() || isOurs() ? "" : " by another driver, of submission " + taken;
        return "the attempt " + document.get("run_key").asText() + "-" + document.get("attempt").asText() + " is "
            + document.get("state").asText() + by;
    }
}

import java.nio.file.Files;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.CountDownLatch;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.deploy.SparkHadoopUtil;

/** A user's program without Spark: records each start in a ledger of tests, and then does as its arguments say. */
public final class Steps {
    public static void main(String[] arguments) throws Exception {
        String line = String.format(
            "{\"event\": \"start\", \"run\": \"%s\", \"incarnation\": \"%s\", \"at\": %d}\n",
            System.getProperty("orchestrator.run"), System.getProperty("orchestrator.incarnation"),
            System.currentTimeMillis() / 1000);
        Files.writeString(java.nio.file.Path.of(arguments[0]), line, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        switch (arguments[1]) {
            case "return" -> { }
            case "relative" -> {
                Path path = new Path(arguments[2]);
                Configuration conf = SparkHadoopUtil.get().conf();
                throw new IllegalStateException(FileSystem.getLocal(conf).makeQualified(path)
                    + " and " + FileSystem.get(conf).makeQualified(path));
            }
            case "sleep" -> Thread.sleep(Long.parseLong(arguments[2]));
            case "throw" -> throw new IllegalStateException(arguments[2]);
            case "exit" -> System.exit(Integer.parseInt(arguments[2]));
            case "fail while it ends" -> {
                CountDownLatch ending = new CountDownLatch(1);
                Runtime.getRuntime().addShutdownHook(new Thread(() -> linger(ending)));
                new Thread(() -> System.exit(Integer.parseInt(arguments[2]))).start();
                ending.await();
                throw new IllegalStateException("its Spark was stopped");
            }
            case "wait" -> {
                while (!Files.exists(java.nio.file.Path.of(arguments[2]))) {
                    Thread.sleep(20);
                }
            }
            default -> throw new IllegalArgumentException(arguments[1]);
        }
    }

    /** As the shutdown hooks of Spark, during which a program may fail. */
    private static void linger(CountDownLatch ending) {
        ending.countDown();
        try {
            Thread.sleep(1000);
        } catch (InterruptedException ignored) {
            Thread.currentThread().interrupt();
        }
    }
}

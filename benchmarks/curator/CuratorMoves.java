import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.concurrent.TimeUnit.SECONDS;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.queue.DistributedIdQueue;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.CreateMode;

/**
 * Curator's part of queue_moves.py, run by curator_peer.py from the source file.
 *
 * <pre>
 * CuratorMoves enqueue HOSTS ROOT ITEMS PAYLOAD_BYTES WARM_UP   fills ROOT/q1, prints puts per second
 * CuratorMoves work HOSTS ROOT THREADS                          one worker: moves from ROOT/q1 to ROOT/q2
 * </pre>
 *
 * A worker that is warm shows itself below ROOT/ready. A byte on stdin is its starting gun, the end of stdin
 * its end, so that it never outlives the benchmark.
 */
public class CuratorMoves {
    static final int LIMIT_SECONDS = 120;

    /** With fewer, the compiler is still at work in what is measured. */
    static final int WARM_UP_MOVES = 2_000;

    static final int WARM_UP_BYTES = 200;

    static final QueueSerializer<String> SERIALIZER = new QueueSerializer<>() {
        @Override
        public byte[] serialize(String item) {
            return item.getBytes(UTF_8);
        }

        @Override
        public String deserialize(byte[] bytes) {
            return new String(bytes, UTF_8);
        }
    };

    public static void main(String[] arguments) throws Exception {
        CuratorFramework client =
                CuratorFrameworkFactory.newClient(arguments[1], new ExponentialBackoffRetry(100, 5));
        client.start();
        if (!client.blockUntilConnected(LIMIT_SECONDS, SECONDS)) {
            throw new IllegalStateException("no ZooKeeper at " + arguments[1]);
        }
        String root = arguments[2];
        int number = Integer.parseInt(arguments[3]);
        switch (arguments[0]) {
            case "enqueue" -> {
                int bytes = Integer.parseInt(arguments[4]);
                fill(client, root + "/warm-up", Integer.parseInt(arguments[5]), bytes);
                System.out.println(number / fill(client, root, number, bytes));
            }
            case "work" -> {
                CountDownLatch gun = new CountDownLatch(1);
                daemon(() -> work(client, root, number, gun)).start();
                while (System.in.read() != -1) {
                    gun.countDown();
                }
            }
            default -> throw new IllegalArgumentException(arguments[0]);
        }
        client.close(); // else its session, and with it its locks, would stay for a while
    }

    /** Fills root/q1 by puts in the background and returns the seconds until all were acknowledged. */
    static double fill(CuratorFramework client, String root, int items, int bytes) throws Exception {
        try (DistributedIdQueue<String> queue =
                QueueBuilder.builder(client, null, SERIALIZER, root + "/q1").buildIdQueue()) {
            queue.start();
            long started = System.nanoTime();
            for (int i = 0; i < items; i++) {
                String id = "job-" + i;
                queue.put(id + " " + "x".repeat(bytes - id.length() - 1), id);
            }
            if (!queue.flushPuts(LIMIT_SECONDS, SECONDS)) {
                throw new IllegalStateException("puts were lost or take too long");
            }
            return (System.nanoTime() - started) / 1e9;
        }
    }

    /** Warms up on a queue of its own, waits for the gun, and moves items from then on. */
    static void work(CuratorFramework client, String root, int threads, CountDownLatch gun) {
        try {
            Executor pool = Executors.newFixedThreadPool(threads, CuratorMoves::daemon);
            String name = Long.toString(ProcessHandle.current().pid());
            String own = root + "/warm-up-" + name;
            fill(client, own, WARM_UP_MOVES, WARM_UP_BYTES);
            try (DistributedIdQueue<String> warmUp = mover(client, own, pool)) {
                warmUp.start();
                while (client.checkExists().forPath(own + "/q1").getNumChildren() > 0) {
                    Thread.sleep(5);
                }
            }
            DistributedIdQueue<String> queue = mover(client, root, pool);
            client.create()
                    .creatingParentsIfNeeded()
                    .withMode(CreateMode.EPHEMERAL)
                    .forPath(root + "/ready/" + name);
            gun.await();
            queue.start();
        } catch (Throwable error) {
            error.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
    }

    /** A consumer of root/q1, not yet started, that brings each item into root/q2; Curator then deletes it. */
    static DistributedIdQueue<String> mover(CuratorFramework client, String root, Executor pool) throws Exception {
        DistributedIdQueue<String> next = QueueBuilder.builder(client, null, SERIALIZER, root + "/q2")
                .putInBackground(false)
                .buildIdQueue();
        next.start();
        QueueConsumer<String> consumer = new QueueConsumer<>() {
            @Override
            public void consumeMessage(String item) throws Exception {
                next.put(item, item.substring(0, item.indexOf(' '))); // the consumer gets the id only from here
            }

            @Override
            public void stateChanged(CuratorFramework client, ConnectionState state) {}
        };
        return QueueBuilder.builder(client, consumer, SERIALIZER, root + "/q1")
                .lockPath(root + "/q1-locks")
                .executor(pool)
                .buildIdQueue();
    }

    static Thread daemon(Runnable task) {
        Thread thread = new Thread(task);
        thread.setDaemon(true);
        return thread;
    }
}

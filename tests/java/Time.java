package org.apache.zookeeper.common;

import java.util.Date;

/** In place of ZooKeeper's own, where a test needs a server whose wall clock is wrong. */
public class Time {
    private static final long AHEAD_MS = Long.getLong("tests.clock.ahead", 0);

    public static long currentElapsedTime() {
        return System.nanoTime() / 1_000_000;
    }

    public static long currentWallTime() {
        return System.currentTimeMillis() + AHEAD_MS;
    }

    public static Date elapsedTimeToDate(long elapsedTime) {
        return new Date(currentWallTime() + elapsedTime - currentElapsedTime());
    }
}

import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.spark.sql.SparkSession;

/** A user's program: counts to its first argument, and ends as the second one says. */
public final class Program {
    public static void main(String[] arguments) throws Exception {
        SparkSession spark = SparkSession.builder().appName("mine").getOrCreate();
        long rows = spark.range(Long.parseLong(arguments[0])).count();
        switch (arguments[1]) {
            case "version" -> System.out.println("version: " + spark.version());
            case "write" -> Files.writeString(Path.of(arguments[2]), rows + " " + spark.sparkContext().appName());
            case "throw" -> throw new IllegalStateException("no rows today");
            case "exit" -> System.exit(Integer.parseInt(arguments[2]));
            default -> throw new IllegalArgumentException(arguments[1]);
        }
    }
}

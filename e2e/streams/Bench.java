import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/** The work of the benchmark as a Kafka Streams application: read a row, write it, send one record on. */
public class Bench {
  public static void main(String[] args) throws Exception {
    String brokers = args[0], group = args[1], in = args[2], out = args[3], dir = args[4], guarantee = args[5], threads = args[6];
    Properties p = new Properties();
    p.put(StreamsConfig.APPLICATION_ID_CONFIG, group);
    p.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, brokers);
    p.put(StreamsConfig.STATE_DIR_CONFIG, dir);
    p.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, guarantee);
    p.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, threads);
    p.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
    p.put("consumer.auto.offset.reset", "earliest");
    p.put(StreamsConfig.producerPrefix(ProducerConfig.ACKS_CONFIG), "all");
    p.put(StreamsConfig.producerPrefix(ProducerConfig.ENABLE_IDEMPOTENCE_CONFIG), true);
    p.put(StreamsConfig.producerPrefix(ProducerConfig.COMPRESSION_TYPE_CONFIG), "snappy");

    StreamsBuilder b = new StreamsBuilder();
    b.addStateStore(
        Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("rows"), Serdes.String(), Serdes.ByteArray()));
    b.stream(in, Consumed.with(Serdes.String(), Serdes.ByteArray()))
        .process(Rows::new, "rows")
        .to(out, Produced.with(Serdes.String(), Serdes.ByteArray()));
    KafkaStreams streams = new KafkaStreams(b.build(), p);
    CountDownLatch end = new CountDownLatch(1);
    Runtime.getRuntime().addShutdownHook(new Thread(() -> { streams.close(); end.countDown(); }));
    streams.start();
    end.await();
  }

  static class Rows implements Processor<String, byte[], String, byte[]> {
    private ProcessorContext<String, byte[]> context;
    private KeyValueStore<String, byte[]> rows;

    @Override
    public void init(ProcessorContext<String, byte[]> context) {
      this.context = context;
      rows = context.getStateStore("rows");
    }

    @Override
    public void process(Record<String, byte[]> r) {
      byte[] row = rows.get(r.key());
      byte[] next = row == null ? new byte[64] : Arrays.copyOf(row, 64);
      ByteBuffer b = ByteBuffer.wrap(next);
      b.putLong(0, b.getLong(0) + 1);
      System.arraycopy(r.value(), 0, next, 8, 32);
      rows.put(r.key(), next);
      context.forward(r);
    }
  }
}

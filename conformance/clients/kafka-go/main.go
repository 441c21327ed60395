// segmentio's kafka-go: `kafka-go FEATURE BOOTSTRAP TOPIC`; ends with 0 if the feature works.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/segmentio/kafka-go"
)

var feature, bootstrap, topic = os.Args[1], os.Args[2], os.Args[3]

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func expect(wanted, found string) {
	if wanted != found {
		must(fmt.Errorf("expected %q, got %q", wanted, found))
	}
}

func produce(ctx context.Context, codec kafka.Compression, values string) {
	writer := &kafka.Writer{
		Addr: kafka.TCP(bootstrap), Topic: topic, RequiredAcks: kafka.RequireAll, Compression: codec,
		BatchTimeout: 10 * time.Millisecond,
	}
	var messages []kafka.Message
	for _, value := range values {
		messages = append(messages, kafka.Message{Value: []byte(string(value))})
	}
	must(writer.WriteMessages(ctx, messages...))
	must(writer.Close())
}

func consume(ctx context.Context, count int, group string) string {
	settings := kafka.ReaderConfig{Brokers: []string{bootstrap}, Topic: topic, GroupID: group, MaxWait: time.Second}
	if group != "" {
		settings.StartOffset = kafka.FirstOffset
	}
	reader := kafka.NewReader(settings)
	found := ""
	for len(found) < count {
		message, err := reader.ReadMessage(ctx)
		must(err)
		found += string(message.Value)
	}
	must(reader.Close())
	return found
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	administrator := &kafka.Client{Addr: kafka.TCP(bootstrap)}
	created, err := administrator.CreateTopics(ctx, &kafka.CreateTopicsRequest{
		Topics: []kafka.TopicConfig{{Topic: topic, NumPartitions: 1, ReplicationFactor: 1}}})
	must(err)
	must(created.Errors[topic])
	switch feature {
	case "round-trip":
		produce(ctx, 0, "abc")
		expect("abc", consume(ctx, 3, ""))
	case "codecs":
		for _, codec := range []kafka.Compression{kafka.Gzip, kafka.Snappy, kafka.Lz4, kafka.Zstd} {
			produce(ctx, codec, "abc")
		}
		expect("abcabcabcabc", consume(ctx, 12, ""))
	case "group":
		produce(ctx, 0, "abc")
		expect("abc", consume(ctx, 3, topic))
		// Not the same again: those would also come to a group that forgot where it stood.
		produce(ctx, 0, "def")
		expect("def", consume(ctx, 3, topic))
	case "topics":
		metadata, err := administrator.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
		must(err)
		expect("1", fmt.Sprint(len(metadata.Topics[0].Partitions)))
		deleted, err := administrator.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{topic}})
		must(err)
		must(deleted.Errors[topic])
	case "offsets":
		produce(ctx, 0, "abc")
		listed, err := administrator.ListOffsets(ctx, &kafka.ListOffsetsRequest{
			Topics: map[string][]kafka.OffsetRequest{topic: {kafka.LastOffsetOf(0)}}})
		must(err)
		expect("3", fmt.Sprint(listed.Topics[topic][0].LastOffset))
	default:
		must(errors.New("no such feature"))
	}
}

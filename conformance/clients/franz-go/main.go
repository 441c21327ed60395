// franz-go: `franz-go FEATURE BOOTSTRAP TOPIC`; ends with 0 if the feature works.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

var feature, bootstrap, topic = os.Args[1], os.Args[2], os.Args[3]

func client(options ...kgo.Opt) *kgo.Client {
	made, err := kgo.NewClient(append(options, kgo.SeedBrokers(bootstrap), kgo.DefaultProduceTopic(topic))...)
	must(err)
	return made
}

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

func records(values string) []*kgo.Record {
	var made []*kgo.Record
	for _, value := range values {
		made = append(made, kgo.StringRecord(string(value)))
	}
	return made
}

func produce(ctx context.Context, options ...kgo.Opt) {
	produceValues(ctx, "abc", options...)
}

func produceValues(ctx context.Context, values string, options ...kgo.Opt) {
	producer := client(options...)
	defer producer.Close()
	must(producer.ProduceSync(ctx, records(values)...).FirstErr())
}

func consume(ctx context.Context, count int, options ...kgo.Opt) string {
	consumer := client(append(options, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	defer consumer.Close()
	var found strings.Builder
	for found.Len() < count {
		fetches := consumer.PollFetches(ctx)
		must(fetches.Err())
		fetches.EachRecord(func(record *kgo.Record) { found.Write(record.Value) })
	}
	if strings.HasSuffix(feature, "group") {
		must(consumer.CommitUncommittedOffsets(ctx))
	}
	return found.String()
}

func group(ctx context.Context, more ...kgo.Opt) {
	options := append(more, kgo.ConsumerGroup(topic), kgo.DisableAutoCommit())
	produce(ctx)
	expect("abc", consume(ctx, 3, options...))
	// Not the same again: those would also come to a group that forgot where it stood.
	produceValues(ctx, "def")
	expect("def", consume(ctx, 3, options...))
}

func transactions(ctx context.Context) {
	producer := client(kgo.TransactionalID(topic))
	defer producer.Close()
	for _, one := range []struct {
		value string
		end   kgo.TransactionEndTry
	}{{"x", kgo.TryAbort}, {"k", kgo.TryCommit}} {
		must(producer.BeginTransaction())
		must(producer.ProduceSync(ctx, kgo.StringRecord(one.value)).FirstErr())
		must(producer.EndTransaction(ctx, one.end))
	}
	expect("k", consume(ctx, 1, kgo.FetchIsolationLevel(kgo.ReadCommitted())))
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	administrator := kadm.NewClient(client())
	defer administrator.Close()
	_, err := administrator.CreateTopic(ctx, 1, 1, nil, topic)
	must(err)
	switch feature {
	case "round-trip":
		produce(ctx, kgo.DisableIdempotentWrite())
		expect("abc", consume(ctx, 3))
	case "codecs":
		for _, codec := range []kgo.CompressionCodec{
			kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression(),
		} {
			produce(ctx, kgo.ProducerBatchCompression(codec))
		}
		expect("abcabcabcabc", consume(ctx, 12))
	case "idempotence":
		produce(ctx)
		expect("abc", consume(ctx, 3))
	case "group":
		group(ctx)
	case "next-group":
		// With its default, which no broker has, it would fall back to the classic protocol.
		group(ctx, kgo.ServerSideBalancer(), kgo.Balancers(kgo.RangeBalancer()))
	case "transactions":
		transactions(ctx)
	case "topics":
		details, err := administrator.ListTopics(ctx, topic)
		must(err)
		expect("1", fmt.Sprint(len(details[topic].Partitions)))
		_, err = administrator.DeleteTopic(ctx, topic)
		must(err)
	case "offsets":
		produce(ctx)
		ends, err := administrator.ListEndOffsets(ctx, topic)
		must(err)
		expect("3", fmt.Sprint(ends[topic][0].Offset))
	default:
		must(errors.New("no such feature"))
	}
}

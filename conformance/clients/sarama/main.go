// sarama: `sarama FEATURE BOOTSTRAP TOPIC`; ends with 0 if the feature works.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/IBM/sarama"
)

const secondsMax = 30

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

func settings() *sarama.Config {
	made := sarama.NewConfig()
	made.Version = sarama.V4_0_0_0
	made.Producer.Return.Successes = true
	made.Producer.RequiredAcks = sarama.WaitForAll
	made.Consumer.Offsets.Initial = sarama.OffsetOldest
	return made
}

func idempotent() *sarama.Config {
	made := settings()
	made.Producer.Idempotent = true
	made.Net.MaxOpenRequests = 1
	return made
}

func produce(config *sarama.Config, values ...string) {
	producer, err := sarama.NewSyncProducer([]string{bootstrap}, config)
	must(err)
	for _, value := range values {
		_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(value)})
		must(err)
	}
	must(producer.Close())
}

func consume(config *sarama.Config, count int) string {
	consumer, err := sarama.NewConsumer([]string{bootstrap}, config)
	must(err)
	partition, err := consumer.ConsumePartition(topic, 0, sarama.OffsetOldest)
	must(err)
	found := ""
	for len(found) < count {
		select {
		case message := <-partition.Messages():
			found += string(message.Value)
		case <-time.After(secondsMax * time.Second):
			must(fmt.Errorf("only %q came", found))
		}
	}
	return found
}

type member struct {
	count  int
	found  string
	cancel context.CancelFunc
}

func (*member) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*member) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		m.found += string(message.Value)
		session.MarkMessage(message, "")
		if len(m.found) == m.count {
			session.Commit()
			m.cancel()
			return nil
		}
	}
	return nil
}

func consumeAsGroup(count int) string {
	group, err := sarama.NewConsumerGroup([]string{bootstrap}, topic, settings())
	must(err)
	ctx, cancel := context.WithTimeout(context.Background(), secondsMax*time.Second)
	m := &member{count: count, cancel: cancel}
	for ctx.Err() == nil {
		if err := group.Consume(ctx, []string{topic}, m); err != nil && ctx.Err() == nil {
			must(err)
		}
	}
	must(group.Close())
	return m.found
}

func transactions() {
	config := idempotent()
	config.Producer.Transaction.ID = topic
	producer, err := sarama.NewSyncProducer([]string{bootstrap}, config)
	must(err)
	for _, one := range []struct {
		value string
		end   func() error
	}{{"x", producer.AbortTxn}, {"k", producer.CommitTxn}} {
		must(producer.BeginTxn())
		_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(one.value)})
		must(err)
		must(one.end())
	}
	must(producer.Close())
	reading := settings()
	reading.Consumer.IsolationLevel = sarama.ReadCommitted
	expect("k", consume(reading, 1))
}

func main() {
	administrator, err := sarama.NewClusterAdmin([]string{bootstrap}, settings())
	must(err)
	must(administrator.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1}, false))
	switch feature {
	case "round-trip":
		produce(settings(), "a", "b", "c")
		expect("abc", consume(settings(), 3))
	case "codecs":
		for _, codec := range []sarama.CompressionCodec{
			sarama.CompressionGZIP, sarama.CompressionSnappy, sarama.CompressionLZ4, sarama.CompressionZSTD,
		} {
			config := settings()
			config.Producer.Compression = codec
			produce(config, "a", "b", "c")
		}
		expect("abcabcabcabc", consume(settings(), 12))
	case "idempotence":
		produce(idempotent(), "a", "b", "c")
		expect("abc", consume(settings(), 3))
	case "group":
		produce(settings(), "a", "b", "c")
		expect("abc", consumeAsGroup(3))
		produce(settings(), "d", "e", "f")
		expect("def", consumeAsGroup(3)) // from where the group stood
	case "transactions":
		transactions()
	case "topics":
		details, err := administrator.DescribeTopics([]string{topic})
		must(err)
		expect("1", fmt.Sprint(len(details[0].Partitions)))
		must(administrator.CreatePartitions(topic, 3, nil, false))
		must(administrator.DeleteTopic(topic))
	case "offsets":
		produce(settings(), "a", "b", "c")
		client, err := sarama.NewClient([]string{bootstrap}, settings())
		must(err)
		end, err := client.GetOffset(topic, 0, sarama.OffsetNewest)
		must(err)
		expect("3", fmt.Sprint(end))
	default:
		must(errors.New("no such feature"))
	}
	must(administrator.Close())
}

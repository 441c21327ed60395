// franz-go's client of schema registries: `franz-go-sr FEATURE URL SUBJECT`; ends with 0 if the feature works.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
)

var (
	feature, url, subject = os.Args[1], os.Args[2], os.Args[3]
	ctx                   = context.Background()
	avro                  = sr.Schema{Schema: `{"type":"record","name":"R","fields":[{"name":"a","type":"string"}]}`}
	wider                 = sr.Schema{Schema: `{"type":"record","name":"R","fields":[{"name":"a","type":"string"},{"name":"b","type":"int"}]}`}
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func expect[T comparable](wanted, found T) {
	if wanted != found {
		must(fmt.Errorf("expected %v, got %v", wanted, found))
	}
}

func got[T any](value T, err error) T {
	must(err)
	return value
}

func create(client *sr.Client, schema sr.Schema) sr.SubjectSchema {
	return got(client.CreateSchema(ctx, subject, schema))
}

// A response's error code, as the client sees it.
func code(err error) int {
	var refused *sr.ResponseError
	if !errors.As(err, &refused) {
		must(fmt.Errorf("expected the registry's error, got %v", err))
	}
	return refused.ErrorCode
}

var features = map[string]func(client *sr.Client){
	"franz-go-register": func(client *sr.Client) {
		made := create(client, avro)
		expect(1, made.Version)
		expect(made.ID, create(client, avro).ID)
		expect(made.ID, got(client.LookupSchema(ctx, subject, avro)).ID)
		expect(avro.Schema, got(client.SchemaByID(ctx, made.ID)).Schema)
		expect(avro.Schema, got(client.SchemaTextByVersion(ctx, subject, 1)))
		expect(1, len(got(client.SchemaUsagesByID(ctx, made.ID))))
		expect(true, slices.Contains(got(client.Subjects(ctx)), subject))
	},
	"franz-go-compatibility": func(client *sr.Client) {
		create(client, avro)
		checked := got(client.CheckCompatibility(sr.WithParams(ctx, sr.Verbose), subject, -1, wider))
		expect(false, checked.Is)
		expect(true, len(checked.Messages) > 0)
		_, err := client.CreateSchema(ctx, subject, wider)
		expect(409, code(err))
		set := client.SetCompatibility(ctx, sr.SetCompatibility{Level: sr.CompatForward}, subject)
		must(set[0].Err)
		expect(sr.CompatForward, client.Compatibility(ctx, subject)[0].Level)
		expect(2, create(client, wider).Version)
	},
	"franz-go-deletes": func(client *sr.Client) {
		create(client, avro)
		expect(1, len(got(client.DeleteSubject(ctx, subject, sr.SoftDelete))))
		_, err := client.SchemaByVersion(ctx, subject, -1)
		expect(40401, code(err))
		expect(1, len(got(client.SubjectVersions(sr.WithParams(ctx, sr.ShowDeleted), subject))))
		expect(1, len(got(client.DeleteSubject(ctx, subject, sr.HardDelete))))
	},
	"franz-go-references": func(client *sr.Client) {
		create(client, avro)
		outer := sr.Schema{
			Schema:     `{"type":"record","name":"S","fields":[{"name":"r","type":"R"}]}`,
			References: []sr.SchemaReference{{Name: "R", Subject: subject, Version: 1}},
		}
		made := got(client.CreateSchema(ctx, subject+"-outer", outer))
		expect(1, len(got(client.SchemaReferences(ctx, subject, 1))))
		expect(1, len(got(client.SchemaByID(ctx, made.ID)).References))
	},
	"franz-go-mode": func(client *sr.Client) {
		create(client, avro)
		must(client.SetMode(ctx, sr.ModeReadOnly, subject)[0].Err)
		expect(sr.ModeReadOnly, client.Mode(ctx, subject)[0].Mode)
		_, err := client.CreateSchema(ctx, subject, wider)
		expect(42205, code(err))
		must(client.ResetMode(ctx, subject)[0].Err)
		expect(true, len(got(client.SupportedTypes(ctx))) == 3)
	},
	"franz-go-serde": func(client *sr.Client) {
		made := create(client, sr.Schema{Type: sr.TypeJSON, Schema: `{"type":"object","properties":{"a":{"type":"string"}}}`})
		type content struct {
			A string `json:"a"`
		}
		var serde sr.Serde
		serde.Register(made.ID, content{}, sr.EncodeFn(json.Marshal), sr.DecodeFn(json.Unmarshal))
		var back content
		must(serde.Decode(serde.MustEncode(content{"x"}), &back))
		expect("x", back.A)
	},
}

func main() {
	// The first registration makes the topic and elects the leader; the client's own limit is 5 seconds.
	client := got(sr.NewClient(sr.URLs(url), sr.HTTPClient(&http.Client{Timeout: 30 * time.Second})))
	features[feature](client)
}

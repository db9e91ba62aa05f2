package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
)

func TestSaramaHasTheContractsSettings(t *testing.T) {
	c, err := kafka.Config{Brokers: []string{"127.0.0.1:9092"}}.Sarama()
	if err != nil {
		t.Fatal(err)
	}
	for what, ok := range map[string]bool{
		"version":                c.Version.IsAtLeast(sarama.V2_8_0_0),
		"acks":                   c.Producer.RequiredAcks == sarama.WaitForAll,
		"idempotent":             c.Producer.Idempotent,
		"one request in flight":  c.Net.MaxOpenRequests == 1,
		"oldest offset":          c.Consumer.Offsets.Initial == sarama.OffsetOldest,
		"read committed":         c.Consumer.IsolationLevel == sarama.ReadCommitted,
		"flush":                  c.Producer.Flush.Frequency == 5*time.Millisecond && c.Producer.Flush.Bytes == 0,
		"session":                c.Consumer.Group.Session.Timeout == 6*time.Second,
		"heartbeat":              3*c.Consumer.Group.Heartbeat.Interval <= c.Consumer.Group.Session.Timeout,
		"rebalance":              c.Consumer.Group.Rebalance.Timeout == 12*time.Second,
		"read above rebalance":   c.Net.ReadTimeout > 2*c.Consumer.Group.Rebalance.Timeout,
		"no topics by accident":  !c.Metadata.AllowAutoTopicCreation,
		"nothing is skipped":     c.Consumer.Fetch.Max == 0,
		"size":                   c.Producer.MaxMessageBytes >= 13<<20,
		"results are returned":   c.Producer.Return.Successes && c.Producer.Return.Errors && c.Consumer.Return.Errors,
		"client id":              c.ClientID == "waymark",
		"largest fetch by count": sarama.MaxResponseSize > 2*kafka.MaxRecordBytes,
	} {
		if !ok {
			t.Errorf("setting: %s", what)
		}
	}
	var total time.Duration
	for i := range c.Producer.Retry.Max {
		total += c.Producer.Retry.BackoffFunc(i, c.Producer.Retry.Max)
	}
	if total < 20*time.Second || total > time.Minute {
		t.Errorf("retries take %v", total)
	}
}

func TestSaramaIsFreshEachTime(t *testing.T) {
	cfg := kafka.Config{Brokers: []string{"127.0.0.1:9092"}}
	a, err := cfg.Sarama(func(s *sarama.Config) { s.ClientID = "changed" })
	if err != nil {
		t.Fatal(err)
	}
	b, err := cfg.Sarama()
	if err != nil {
		t.Fatal(err)
	}
	if a == b || a.ClientID != "changed" || b.ClientID == "changed" {
		t.Fatalf("%q and %q", a.ClientID, b.ClientID)
	}
	if _, err := cfg.Sarama(func(s *sarama.Config) { s.Producer.Retry.Max = -1 }); err == nil {
		t.Fatal("what mutate makes wrong was accepted")
	}
}

func TestConfigNamesWhatIsWrong(t *testing.T) {
	for want, c := range map[string]kafka.Config{
		"brokers: at least": {},
		"brokers[1]":        {Brokers: []string{"a:1", "nonsense"}},
		"sasl: mechanism":   {Brokers: []string{"a:1"}, SASL: &kafka.SASL{Mechanism: "GSSAPI", User: "u", Password: "p"}},
		"sasl: user":        {Brokers: []string{"a:1"}, SASL: &kafka.SASL{Mechanism: kafka.SASLPlain, Password: "p"}},
		"sasl: password":    {Brokers: []string{"a:1"}, SASL: &kafka.SASL{Mechanism: kafka.SASLPlain, User: "u"}},
		"sasl: token":       {Brokers: []string{"a:1"}, SASL: &kafka.SASL{Mechanism: kafka.SASLOAuthBearer}},
		"do not belong":     {Brokers: []string{"a:1"}, SASL: &kafka.SASL{Mechanism: kafka.SASLOAuthBearer, User: "u", Token: noToken}},
		"tls: cert_file":    {Brokers: []string{"a:1"}, TLS: &kafka.TLS{CertFile: "x"}},
		"tls: ca_file":      {Brokers: []string{"a:1"}, TLS: &kafka.TLS{CAFile: "/does/not/exist"}},
	} {
		if _, err := c.Sarama(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func noToken(context.Context) (string, error) { return "", errors.New("nobody is logged in") }

// Each login asks for a token, which has a time to come, and what keeps it from coming is told.
func TestTokenIsAskedForEachLogin(t *testing.T) {
	given := 0
	c := kafka.Config{Brokers: []string{"a:1"}, SASL: &kafka.SASL{Mechanism: kafka.SASLOAuthBearer, Token: func(ctx context.Context) (string, error) {
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("a token without a time to come")
		}
		if given++; given == 3 {
			return noToken(ctx)
		}
		return fmt.Sprint("token-", given), nil
	}}}
	s, err := c.Sarama()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"token-1", "token-2"} {
		if got, err := s.Net.SASL.TokenProvider.Token(); err != nil || got.Token != want {
			t.Errorf("%v, %v; want %s", got, err, want)
		}
	}
	if _, err := s.Net.SASL.TokenProvider.Token(); err == nil || !strings.Contains(err.Error(), "nobody is logged in") {
		t.Errorf("no token: %v", err)
	}
}

func TestSASLNeverPrintsItsPassword(t *testing.T) {
	s := kafka.SASL{Mechanism: kafka.SASLPlain, User: "user", Password: "hunter2"}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "sasl", s, "config", kafka.Config{SASL: &s})
	all := fmt.Sprintf("%v %+v %#v %s %v %+v %s", s, s, s, s, &s, kafka.Config{SASL: &s}, log.String())
	if strings.Contains(all, "hunter2") || !strings.Contains(all, "user") {
		t.Fatal(all)
	}
}

func TestSASL(t *testing.T) {
	kafkatest.NoLeaks(t)
	for _, mechanism := range []string{kafka.SASLPlain, kafka.SASLScramSHA256, kafka.SASLScramSHA512} {
		c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.Superuser(mechanism, "user", "secret"), kfake.SeedTopics(1, "t"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		cfg := kafka.Config{Brokers: c.ListenAddrs(), SASL: &kafka.SASL{Mechanism: mechanism, User: "user", Password: "secret"}}
		kafkatest.Produce(t, cfg, kafka.Record{Topic: "t", Value: []byte(mechanism)})
		if got := kafkatest.ReadAll(t, cfg, "t"); len(got) != 1 {
			t.Errorf("%s: %d records", mechanism, len(got))
		}
		cfg.SASL.Password = "wrong"
		if _, err := kafka.NewReader(cfg); err == nil {
			t.Errorf("%s: a wrong password was accepted", mechanism)
		}
	}
}

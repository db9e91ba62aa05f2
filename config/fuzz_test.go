package config_test

import (
	"testing"

	"github.com/waymarkhq/waymark/config"
)

// What the environment and the command line say is judged value by value: the configuration, or a list of problems.
func FuzzEnvironmentAndFlags(f *testing.F) {
	f.Add("WAYMARK_KAFKA_BROKERS=a:1,b:2", "splitting.tokens", "100")
	f.Add("WAYMARK_DELIVERY_BACKOFF_MAX=-1s", "kafka.epoch", "99999999999999999999")
	f.Add("WAYMARK_NO_SUCH=1", "no.such", "")
	f.Add("WAYMARK_LIMITS_CHUNKS", "api.listen", "[::1]:http")
	f.Add("=", "embedding.url", "http://%zz")
	f.Fuzz(func(t *testing.T, variable, key, value string) {
		c, err := config.Load(config.Sources{Environ: []string{variable}, Flags: map[string]string{key: value}}, up)
		if (c == nil) == (err == nil) {
			t.Fatalf("configuration %v with error %v", c, err)
		}
		if err != nil && len(listOf(err)) == 0 {
			t.Fatalf("an error without problems: %#v", err)
		}
	})
}

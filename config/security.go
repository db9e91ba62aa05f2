package config

import (
	"os"
	"strings"
)

func (c *Config) checkSecurity(t Target, r *report) {
	tls, sasl := c.Kafka.TLS, c.Kafka.SASL
	if !tls.Enabled && (tls.CAFile != "" || tls.CertFile != "" || tls.KeyFile != "" || tls.ServerName != "") {
		r.addFirst([]string{"kafka.tls.ca_file", "kafka.tls.cert_file", "kafka.tls.key_file", "kafka.tls.server_name", "kafka.tls.enabled"},
			"contradicts kafka.tls.enabled: false")
	}
	if (tls.CertFile == "") != (tls.KeyFile == "") {
		r.addFirst([]string{"kafka.tls.cert_file", "kafka.tls.key_file"}, "cert_file and key_file go together; one is missing")
	}
	if t.kafka() {
		r.checkFile("kafka.tls.ca_file", tls.CAFile)
		r.checkFile("kafka.tls.cert_file", tls.CertFile)
		r.checkFile("kafka.tls.key_file", tls.KeyFile)
	}
	c.checkSASL(t, r)
	if t.embedded(c) && (tls.Enabled || sasl.Mechanism != "") {
		r.addFirst([]string{"kafka.tls.enabled", "kafka.sasl.mechanism"},
			"contradicts the embedded broker, which has neither TLS nor SASL; name kafka.brokers")
	}
}

// mechanisms of SASL, for people.
const mechanisms = "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER"

func (c *Config) checkSASL(t Target, r *report) {
	sasl := c.Kafka.SASL
	passwordKeys := []string{"kafka.sasl.username", "kafka.sasl.password", "kafka.sasl.password_file"}
	tokenKeys := []string{"kafka.sasl.token_file", "kafka.sasl.token_command"}
	password := sasl.Username != "" || sasl.Password != "" || sasl.PasswordFile != ""
	token := sasl.TokenFile != "" || len(sasl.TokenCommand) > 0
	switch sasl.Mechanism {
	case "":
		if password || token {
			r.addFirst(append(passwordKeys, tokenKeys...), "needs kafka.sasl.mechanism: %s", mechanisms)
		}
	case "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512":
		if sasl.Username == "" || sasl.Password == "" && sasl.PasswordFile == "" {
			r.add("kafka.sasl.mechanism", "needs kafka.sasl.username and a password (%sKAFKA_SASL_PASSWORD or kafka.sasl.password_file)",
				variablePrefix)
		}
		if token {
			r.addFirst(tokenKeys, "contradicts kafka.sasl.mechanism: %s, which knows no token", sasl.Mechanism)
		}
	case "OAUTHBEARER":
		if !token {
			r.add("kafka.sasl.mechanism", "needs kafka.sasl.token_file or kafka.sasl.token_command")
		}
		if password {
			r.addFirst(passwordKeys, "contradicts kafka.sasl.mechanism: OAUTHBEARER, which has a token instead")
		}
	default:
		r.add("kafka.sasl.mechanism", "%q is none of %s", sasl.Mechanism, mechanisms)
	}
	r.checkToken("kafka.sasl", sasl.TokenFile, sasl.TokenCommand, t.kafka())
}

// checkToken reports a token that has two sources, or none that can be read.
func (r *report) checkToken(section, file string, command []string, needed bool) {
	if file != "" && len(command) > 0 {
		r.addFirst([]string{section + ".token_command", section + ".token_file"}, "token_file and token_command contradict each other: keep one")
	}
	if len(command) > 0 && command[0] == "" {
		r.add(section+".token_command", "begins with an empty word")
	}
	if needed {
		r.checkFile(section+".token_file", file)
	}
}

// checkFile reports a file that cannot be opened.
func (r *report) checkFile(key, path string) {
	if path == "" {
		return
	}
	f, err := os.Open(path)
	if err != nil {
		r.add(key, "cannot be read: %v", err)
		return
	}
	_ = f.Close() // nothing was written
}

func (c *Config) checkWeaviateSecurity(t Target, r *report) {
	w := c.Weaviate
	if (w.APIKey != "" || w.APIKeyFile != "") && (w.TokenFile != "" || len(w.TokenCommand) > 0) {
		r.addFirst([]string{"weaviate.token_file", "weaviate.token_command", "weaviate.api_key_file", "weaviate.api_key"},
			"an API key and an OIDC token contradict each other: keep one")
	}
	r.checkToken("weaviate", w.TokenFile, w.TokenCommand, t.store())
	if w.TLS != (WeaviateTLS{}) && !strings.HasPrefix(w.URL, "https:") {
		r.addFirst([]string{"weaviate.tls.ca_file", "weaviate.tls.cert_file", "weaviate.tls.key_file", "weaviate.tls.server_name", "weaviate.url"},
			"contradicts weaviate.url, which does not begin with https")
	}
	if (w.TLS.CertFile == "") != (w.TLS.KeyFile == "") {
		r.addFirst([]string{"weaviate.tls.cert_file", "weaviate.tls.key_file"}, "cert_file and key_file go together; one is missing")
	}
	if t.store() {
		r.checkFile("weaviate.tls.ca_file", w.TLS.CAFile)
		r.checkFile("weaviate.tls.cert_file", w.TLS.CertFile)
		r.checkFile("weaviate.tls.key_file", w.TLS.KeyFile)
	}
}

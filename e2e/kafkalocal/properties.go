package kafkalocal

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

const log4j2 = `rootLogger.level = INFO
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1} %m%n
`

// properties is the text of node i's server.properties.
func (c *Cluster) properties(i int) string {
	replicas, minISR := "1", "1"
	if c.Nodes >= 3 {
		replicas, minISR = "3", "2"
	}
	var voters []string
	for j := 1; j <= c.Nodes; j++ {
		voters = append(voters, fmt.Sprintf("%d@%s", j, c.Addr(j, controller)))
	}
	listeners := []string{"PLAINTEXT://" + c.Addr(i, Plaintext), "CONTROLLER://" + c.Addr(i, controller)}
	p := map[string]string{
		"process.roles":            "broker,controller",
		"node.id":                  strconv.Itoa(i),
		"log.dirs":                 c.file(node(i), "data"),
		"controller.quorum.voters": strings.Join(voters, ","),
		// Kafka maps these names to protocols by itself, but not once there is a SASL or SSL listener.
		"listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL",
		"controller.listener.names":      "CONTROLLER",

		"auto.create.topics.enable":  "false",
		"num.partitions":             "1",
		"default.replication.factor": replicas,
		"min.insync.replicas":        minISR,

		// Internal topics: all nodes, few partitions, since they are made at first use.
		"offsets.topic.replication.factor":                 replicas,
		"offsets.topic.num.partitions":                     "3",
		"transaction.state.log.replication.factor":         replicas,
		"transaction.state.log.min.isr":                    minISR,
		"transaction.state.log.num.partitions":             "3",
		"share.coordinator.state.topic.replication.factor": replicas,
		"share.coordinator.state.topic.min.isr":            minISR,
		"share.coordinator.state.topic.num.partitions":     "3",

		// No waits that only make sense with many machines.
		"group.initial.rebalance.delay.ms": "0",
		"group.min.session.timeout.ms":     "100",

		// A dead node is noticed after 3 s instead of 9 s, a dead controller leader after 1 s.
		"broker.session.timeout.ms":                                   "3000",
		"broker.heartbeat.interval.ms":                                "500",
		"controller.quorum.fetch.timeout.ms":                          "1000",
		"controller.quorum.election.timeout.ms":                       "500",
		"controller.quorum.election.backoff.max.ms":                   "500",
		"replica.lag.time.max.ms":                                     "5000",
		"transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",

		// Small: the cleaner's buffer alone is 128 MiB of heap by default.
		"log.cleaner.dedupe.buffer.size": "8388608",
		"log.cleaner.backoff.ms":         "1000",
		"num.network.threads":            "2",
		"num.io.threads":                 "4",
		"background.threads":             "2",
	}
	if len(c.Users) > 0 {
		listeners = append(listeners, "SASL_PLAINTEXT://"+c.Addr(i, SASL))
		p["sasl.enabled.mechanisms"] = "SCRAM-SHA-512,PLAIN"
		p["listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config"] =
			"org.apache.kafka.common.security.scram.ScramLoginModule required;"
		plain := "org.apache.kafka.common.security.plain.PlainLoginModule required"
		for _, name := range slices.Sorted(maps.Keys(c.Users)) {
			plain += fmt.Sprintf(" user_%s=%q", name, c.Users[name])
		}
		p["listener.name.sasl_plaintext.plain.sasl.jaas.config"] = plain + ";"
		if c.Keys != "" {
			p["sasl.enabled.mechanisms"] += ",OAUTHBEARER"
			oauth := "listener.name.sasl_plaintext.oauthbearer."
			p[oauth+"sasl.jaas.config"] = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
			p[oauth+"sasl.server.callback.handler.class"] = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
			p[oauth+"sasl.oauthbearer.jwks.endpoint.url"] = "file://" + c.Keys
			p[oauth+"sasl.oauthbearer.expected.issuer"] = TokenIssuer
			p[oauth+"sasl.oauthbearer.expected.audience"] = TokenAudience
			// Without it a connection outlives the token that it was made with.
			p[oauth+"connections.max.reauth.ms"] = "3600000"
		}
		p["authorizer.class.name"] = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
		p["super.users"] = "User:ANONYMOUS;User:admin"
		p["allow.everyone.if.no.acl.found"] = "false"
	}
	if c.TLS {
		listeners = append(listeners, "SSL://"+c.Addr(i, SSL))
		p["ssl.keystore.type"] = "PEM"
		p["ssl.keystore.location"] = c.file("tls", "server.pem")
		p["ssl.truststore.type"] = "PEM"
		p["ssl.truststore.location"] = c.file("tls", "ca.pem")
		p["ssl.client.auth"] = "requested"
	}
	p["listeners"] = strings.Join(listeners, ",")
	maps.Copy(p, c.Props)

	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(p)) {
		fmt.Fprintf(&b, "%s=%s\n", k, p[k])
	}
	return b.String()
}

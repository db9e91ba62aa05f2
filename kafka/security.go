package kafka

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

// TLS encrypts the connections to the brokers. The zero value trusts the system's authorities.
type TLS struct {
	CAFile   string // PEM, instead of the system's authorities
	CertFile string // PEM, of the client; together with KeyFile
	KeyFile  string // PEM
	// ServerName is the name that the brokers' certificates must bear; "" is the host that is dialled.
	ServerName string
	// Insecure accepts any certificate. For tests.
	Insecure bool
}

func (t *TLS) validate() error {
	if (t.CertFile == "") != (t.KeyFile == "") {
		return errors.New("tls: cert_file and key_file need each other")
	}
	return nil
}

// Config reads the files. It returns a new one each time.
func (t *TLS) Config() (*tls.Config, error) {
	c := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         t.ServerName,
		InsecureSkipVerify: t.Insecure, //nolint:gosec // an explicit choice of the operator
	}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("tls: ca_file: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls: ca_file: no certificate in %s", t.CAFile)
		}
	}
	if t.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("tls: cert_file: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// Mechanisms of SASL.
const (
	SASLPlain       = "PLAIN"
	SASLScramSHA256 = "SCRAM-SHA-256"
	SASLScramSHA512 = "SCRAM-SHA-512"
	SASLOAuthBearer = "OAUTHBEARER"
)

// SASL authenticates this client to the brokers. It prints without its password.
type SASL struct {
	Mechanism string // one of the SASL constants
	// User and Password belong to all mechanisms but OAUTHBEARER.
	User     string
	Password string
	// Token gives the token of OAUTHBEARER. It is asked at every connection, and again before the broker's patience with one
	// ends; several goroutines may call it at once. It has ten seconds.
	Token func(context.Context) (string, error)
}

// String leaves the password out.
func (s SASL) String() string {
	if s.Mechanism == SASLOAuthBearer {
		return s.Mechanism
	}
	return fmt.Sprintf("%s user %q", s.Mechanism, s.User)
}

// GoString leaves the password out.
func (s SASL) GoString() string { return s.String() }

// LogValue leaves the password out.
func (s SASL) LogValue() slog.Value { return slog.StringValue(s.String()) }

func (s *SASL) validate() error {
	var errs []error
	switch s.Mechanism {
	case SASLPlain, SASLScramSHA256, SASLScramSHA512:
	case SASLOAuthBearer:
		if s.Token == nil {
			errs = append(errs, errors.New("sasl: token is missing"))
		}
		if s.User != "" || s.Password != "" {
			errs = append(errs, errors.New("sasl: user and password do not belong to OAUTHBEARER"))
		}
		return errors.Join(errs...)
	default:
		errs = append(errs, fmt.Errorf("sasl: mechanism: %q is none of %s, %s, %s, %s",
			s.Mechanism, SASLPlain, SASLScramSHA256, SASLScramSHA512, SASLOAuthBearer))
	}
	if s.User == "" {
		errs = append(errs, errors.New("sasl: user is missing"))
	}
	if s.Password == "" {
		errs = append(errs, errors.New("sasl: password is missing"))
	}
	return errors.Join(errs...)
}

func (c Config) secure(s *sarama.Config) error {
	if c.TLS != nil {
		conf, err := c.TLS.Config()
		if err != nil {
			return err
		}
		s.Net.TLS.Enable = true
		s.Net.TLS.Config = conf
	}
	if c.SASL != nil {
		s.Net.SASL.Enable = true
		s.Net.SASL.User = c.SASL.User
		s.Net.SASL.Password = c.SASL.Password
		s.Net.SASL.Mechanism = sarama.SASLMechanism(c.SASL.Mechanism)
		switch c.SASL.Mechanism {
		case SASLScramSHA256:
			s.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &scramClient{hash: sha256.New} }
		case SASLScramSHA512:
			s.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &scramClient{hash: sha512.New} }
		case SASLOAuthBearer:
			s.Net.SASL.TokenProvider = tokenProvider{c.SASL.Token}
		}
	}
	return nil
}

// tokenTimeout is how long a token may take: a login waits for it.
const tokenTimeout = 10 * time.Second

// tokenProvider gives sarama its tokens.
type tokenProvider struct {
	token func(context.Context) (string, error)
}

// Token implements sarama.AccessTokenProvider.
func (p tokenProvider) Token() (*sarama.AccessToken, error) {
	ctx, cancel := context.WithTimeout(context.Background(), tokenTimeout)
	defer cancel()
	text, err := p.token(ctx)
	if err != nil {
		return nil, fmt.Errorf("token for OAUTHBEARER: %w", err)
	}
	return &sarama.AccessToken{Token: text}, nil
}

// scramClient is one conversation of SCRAM; sarama brings none.
type scramClient struct {
	hash scram.HashGeneratorFcn
	conv *scram.ClientConversation
}

func (c *scramClient) Begin(user, password, authzID string) error {
	client, err := c.hash.NewClient(user, password, authzID)
	if err != nil {
		return err
	}
	c.conv = client.NewConversation()
	return nil
}

func (c *scramClient) Step(challenge string) (string, error) { return c.conv.Step(challenge) }

func (c *scramClient) Done() bool { return c.conv.Done() }

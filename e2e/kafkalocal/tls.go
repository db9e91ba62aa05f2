package kafkalocal

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// certificate is a certificate with its key.
type certificate struct {
	parsed          *x509.Certificate
	key             *ecdsa.PrivateKey
	certPEM, keyPEM []byte
}

// writeTLS makes an authority and, signed by it, a certificate for the nodes and one for clients.
//
//	ca.pem       the authority's certificate
//	server.pem   key and chain, in the form that Kafka's ssl.keystore.type=PEM wants
//	client.pem, client.key
func writeTLS(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	ca, err := issue(1, "kafkalocal CA", nil)
	if err != nil {
		return err
	}
	server, err := issue(2, "kafka", ca)
	if err != nil {
		return err
	}
	client, err := issue(3, "client", ca)
	if err != nil {
		return err
	}
	for name, b := range map[string][]byte{
		"ca.pem":     ca.certPEM,
		"server.pem": slices.Concat(server.keyPEM, server.certPEM, ca.certPEM),
		"client.pem": client.certPEM,
		"client.key": client.keyPEM,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// issue makes a certificate for 127.0.0.1, signed by the authority; without one it is an authority itself.
func issue(serial int64, name string, authority *certificate) (*certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	t := &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.AddDate(1, 0, 0),
	}
	parent, signer := t, key
	if authority == nil {
		t.IsCA, t.BasicConstraintsValid, t.KeyUsage = true, true, x509.KeyUsageCertSign
	} else {
		parent, signer = authority.parsed, authority.key
		t.KeyUsage = x509.KeyUsageDigitalSignature
		t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
		t.DNSNames, t.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, parent, key.Public(), signer)
	if err != nil {
		return nil, err
	}
	c := &certificate{key: key, certPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
	if c.parsed, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	c.keyPEM = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
	return c, nil
}

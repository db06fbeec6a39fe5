package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	selfSignedLifetime = 365 * 24 * time.Hour
	selfSignedRenewal  = 30 * 24 * time.Hour // before the expiration
)

// SelfSigned returns the files of a self-signed serving certificate and its key:
// kubelet.crt and kubelet.key in dir, as with the kubelet. If there is no certificate that
// is valid for another 30 days, it creates one for these names and addresses, valid for one
// year. names must not be empty.
func SelfSigned(dir string, names []string, ips []net.IP) (certFile, keyFile string, err error) {
	certFile, keyFile = filepath.Join(dir, "kubelet.crt"), filepath.Join(dir, "kubelet.key")
	if pair, err := tls.LoadX509KeyPair(certFile, keyFile); err == nil && time.Until(pair.Leaf.NotAfter) > selfSignedRenewal {
		return certFile, keyFile, nil
	}
	if len(names) == 0 {
		return "", "", errors.New("certs: create self-signed certificate: no names")
	}
	cert, key, err := selfSigned(names, ips)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = certutil.WriteCert(certFile, cert)
	}
	if err == nil {
		err = keyutil.WriteKey(keyFile, key)
	}
	if err != nil {
		return "", "", fmt.Errorf("certs: create self-signed certificate for %s: %w", names[0], err)
	}
	return certFile, keyFile, nil
}

// selfSigned creates a certificate and its key, in PEM.
func selfSigned(names []string, ips []net.IP) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: names[0]},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(selfSignedLifetime), // clocks differ
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, DNSNames: names, IPAddresses: ips,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), nil
}

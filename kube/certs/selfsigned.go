package certs

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// remake is how long a certificate has to be good for to be used again.
const remake = 30 * 24 * time.Hour

// SelfSigned returns the files of a server's certificate and key that nobody else has
// signed: kubelet.crt and kubelet.key in dir, as a kubelet has them (sv-2). Those that
// are there are used as long as they are good for 30 days more; else they are made, for
// host and its other addresses and names, and for a year.
func SelfSigned(dir, host string, ips []net.IP, names []string) (certFile, keyFile string, err error) {
	certFile, keyFile = filepath.Join(dir, "kubelet.crt"), filepath.Join(dir, "kubelet.key")
	if pair, err := tls.LoadX509KeyPair(certFile, keyFile); err == nil {
		cert, err := x509.ParseCertificate(pair.Certificate[0])
		if err == nil && time.Until(cert.NotAfter) > remake {
			return certFile, keyFile, nil
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", "", fmt.Errorf("certs: %w", err)
	}
	cert, key, err := certutil.GenerateSelfSignedCertKey(host, ips, names)
	if err == nil {
		err = certutil.WriteCert(certFile, cert)
	}
	if err == nil {
		err = keyutil.WriteKey(keyFile, key)
	}
	if err != nil {
		return "", "", fmt.Errorf("certs: make a certificate for %s: %w", host, err)
	}
	return certFile, keyFile, nil
}

package certs

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"fmt"
	"net"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/util/certificate"
)

// An order is what a certificate is asked for with.
type order struct {
	prefix  string // of its files
	signer  string
	subject pkix.Name
	usage   certificatesv1.KeyUsage

	dns []string // the names and addresses of a server, sorted
	ips []net.IP
}

// nodeSubject is what certificates of a node say whose they are.
func nodeSubject(nodeName string) pkix.Name {
	return pkix.Name{CommonName: userPrefix + nodeName, Organization: []string{nodesGroup}}
}

// order is that of the node's client certificate.
func (c Config) order() order {
	return order{prefix: prefix, signer: certificatesv1.KubeAPIServerClientKubeletSignerName, subject: nodeSubject(c.NodeName), usage: certificatesv1.UsageClientAuth}
}

// usages are those that the signers of such certificates want to be asked for: that of
// an RSA key is one more.
func (o order) usages(key crypto.Signer) []certificatesv1.KeyUsage {
	list := []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, o.usage}
	if _, is := key.Public().(*rsa.PublicKey); is {
		list = append(list, certificatesv1.UsageKeyEncipherment)
	}
	return list
}

// name is the same for one key and order: who asks again asks for the same.
func (o order) name(key crypto.Signer) (string, error) {
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return "", fmt.Errorf("certs: key: %w", err)
	}
	sum := sha256.New()
	sum.Write(public)
	fmt.Fprint(sum, o.subject, o.signer)
	for _, name := range o.dns {
		fmt.Fprint(sum, "\n", name)
	}
	for _, ip := range o.ips {
		fmt.Fprint(sum, "\n", ip)
	}
	return "node-csr-" + base64.RawURLEncoding.EncodeToString(sum.Sum(nil)), nil
}

func (o order) store(dir string) (certificate.FileStore, error) {
	store, err := certificate.NewFileStore(o.prefix, dir, dir, "", "")
	if err != nil {
		return nil, fmt.Errorf("certs: %s: %w", dir, err)
	}
	return store, nil
}

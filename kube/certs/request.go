package certs

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/util/certificate"

	"github.com/kubeparts/kubeparts/logs"
)

// A certificateRequest specifies a certificate.
type certificateRequest struct {
	prefix  string // of its files
	signer  string
	subject pkix.Name
	usage   certificatesv1.KeyUsage

	dns []string // names of a server, sorted
	ips []net.IP
}

// nodeSubject returns the subject of certificates of a node.
func nodeSubject(nodeName string) pkix.Name {
	return pkix.Name{CommonName: userPrefix + nodeName, Organization: []string{nodesGroup}}
}

// clientRequest returns the request of the client certificate.
func (c Config) clientRequest() certificateRequest {
	return certificateRequest{prefix: clientPrefix, signer: certificatesv1.KubeAPIServerClientKubeletSignerName, subject: nodeSubject(c.NodeName), usage: certificatesv1.UsageClientAuth}
}

// sameHosts reports whether two requests have the same names and addresses.
func (r certificateRequest) sameHosts(o certificateRequest) bool {
	return slices.Equal(r.dns, o.dns) && slices.EqualFunc(r.ips, o.ips, net.IP.Equal)
}

// usages returns the usages that the signers require: RSA keys require an additional one.
func (r certificateRequest) usages(key crypto.Signer) []certificatesv1.KeyUsage {
	list := []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, r.usage}
	if _, is := key.Public().(*rsa.PublicKey); is {
		list = append(list, certificatesv1.UsageKeyEncipherment)
	}
	return list
}

// name returns a name that is the same for the same key and content, so that a repeated
// request is the same object.
func (r certificateRequest) name(key crypto.Signer) (string, error) {
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return "", fmt.Errorf("certs: key: %w", err)
	}
	sum := sha256.New()
	sum.Write(public)
	fmt.Fprint(sum, r.subject, r.signer)
	for _, name := range r.dns {
		fmt.Fprint(sum, "\n", name)
	}
	for _, ip := range r.ips {
		fmt.Fprint(sum, "\n", ip)
	}
	return "node-csr-" + base64.RawURLEncoding.EncodeToString(sum.Sum(nil)), nil
}

func (r certificateRequest) store(dir string, log *slog.Logger) (certificate.FileStore, error) {
	store, err := certificate.NewFileStoreWithLogger(logs.Klog(log), r.prefix, dir, dir, "", "")
	if err != nil {
		return nil, fmt.Errorf("certs: %s: %w", dir, err)
	}
	return store, nil
}

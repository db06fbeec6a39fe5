package certs

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/rest"
)

// A choice is the certificate with which a Rotation starts.
type choice struct {
	cert    *tls.Certificate
	copy    bool // it is embedded in the kubeconfig and not stored yet
	replace bool // it is replaced at once
}

// firstCertificate chooses between the stored certificate, or the error of reading it, and
// that of the kubeconfig (base), as the kubelet does: the stored one if it is valid for the
// node, or else that of the kubeconfig. An embedded one may have more rights than a node,
// and is therefore replaced at once. If both have expired, a stored one or one in a file is
// returned, since files may be replaced and the clock may be wrong.
func firstCertificate(stored *tls.Certificate, storedErr error, base *rest.Config, nodeName string, now time.Time) (choice, error) {
	if storedErr == nil {
		if storedErr = usable(*stored, nodeName, now); storedErr == nil {
			return choice{cert: stored, replace: !isOfNode(stored, nodeName)}, nil
		}
	}
	pair, err := configured(base)
	if err == nil {
		err = usable(pair, "", now)
	}
	switch {
	case err == nil && embedded(base):
		same := stored != nil && slices.EqualFunc(stored.Certificate, pair.Certificate, bytes.Equal)
		return choice{cert: &pair, copy: !same, replace: true}, nil
	case err == nil:
		return choice{cert: &pair, replace: !isOfNode(&pair, nodeName)}, nil
	case embedded(base):
		return choice{}, fmt.Errorf("%w; %w", err, storedErr)
	case stored != nil:
		return choice{cert: stored, replace: true}, nil
	case pair.Leaf != nil:
		return choice{cert: &pair, replace: true}, nil
	}
	return choice{}, fmt.Errorf("%w; %w", err, storedErr)
}

// isOfNode reports whether a certificate has the user and the group of a node.
func isOfNode(c *tls.Certificate, nodeName string) bool {
	want := nodeSubject(nodeName)
	return c.Leaf.Subject.CommonName == want.CommonName && slices.Contains(c.Leaf.Subject.Organization, nodesGroup)
}

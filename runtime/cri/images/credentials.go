package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Credentials supplies the credentials with which a pod may pull an image. Lookup is called
// concurrently, at most once for each Request: before a pull, and before a pod may use an
// image that was pulled with credentials. It may block, and must return when ctx is done.
//
// Credentials are tried in the order of the result; if it is empty, the image is pulled
// anonymously. Credentials that are returned with an error are used; the error is logged, and
// is part of the error of the pull if that fails.
type Credentials interface {
	Lookup(ctx context.Context, image string, pod *v1.Pod) ([]Credential, error)
}

// A Credential is a credential for pulling an image. Without a Secret and a ServiceAccount
// it is the node's: all pods of the node may use images that were pulled with it.
type Credential struct {
	// Auth is passed to the runtime. Nil means an anonymous pull.
	Auth *runtimeapi.AuthConfig

	// Secret is the pull secret that contains the credential. May be nil.
	Secret *Object

	// ServiceAccount is the service account for whose token a credential provider
	// returned the credential. May be nil.
	ServiceAccount *Object

	// Hash is the hexadecimal SHA-256 hash of the content, for records and back-off.
	// Empty for credentials that expire, such as tokens: these are identified by Secret
	// or ServiceAccount only.
	Hash string
}

// String returns the owner of the credential. It contains no secret data.
func (c Credential) String() string {
	switch {
	case c.Secret != nil:
		return "credential of secret " + c.Secret.Namespace + "/" + c.Secret.Name
	case c.ServiceAccount != nil:
		return "credential of service account " + c.ServiceAccount.Namespace + "/" + c.ServiceAccount.Name
	}
	return "credential of the node"
}

// An Object identifies a secret or service account.
type Object struct {
	Namespace, Name, UID string
}

// fingerprint returns a hash of the data sent to registries, in order. Pulls with the same
// fingerprint can be shared.
func fingerprint(creds []Credential) string {
	h := sha256.New()
	for _, c := range creds {
		a := c.Auth // may be nil
		for _, field := range []string{
			a.GetUsername(), a.GetPassword(), a.GetAuth(), a.GetServerAddress(), a.GetIdentityToken(), a.GetRegistryToken(),
		} {
			h.Write([]byte(strconv.Quote(field)))
		}
		h.Write([]byte{'\n'})
	}
	return hex.EncodeToString(h.Sum(nil))
}

// identity returns a text that changes if the credentials of a pod are changed. Unlike the
// fingerprint it does not change if a token is renewed.
func identity(creds []Credential) string {
	var parts []string
	for _, c := range creds {
		for _, o := range []*Object{c.Secret, c.ServiceAccount} {
			if o == nil {
				o = new(Object)
			}
			parts = append(parts, strconv.Quote(o.Namespace), strconv.Quote(o.Name), strconv.Quote(o.UID))
		}
		parts = append(parts, strconv.Quote(c.Hash))
	}
	return strings.Join(parts, ",")
}

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

// Credentials finds what a pod may pull an image with. It is called from many
// goroutines, at most once for each request: before a pull, and before an image
// that was pulled with credentials is given to a pod. It may block, and must
// return when ctx ends.
//
// The answer is in the order in which to try; none means that the image is
// pulled anonymously (img-14). An answer with an error is used as far as it
// goes; the error is logged, and told to the user if the pull fails.
type Credentials interface {
	Lookup(ctx context.Context, image string, pod *v1.Pod) ([]Credential, error)
}

// A Credential is one that an image may be pulled with. One that is of neither
// a secret nor a service account is the node's: what was pulled with it, every
// pod of the node may use.
type Credential struct {
	// Auth is handed to the runtime. Nil is an anonymous try.
	Auth *runtimeapi.AuthConfig

	// Secret it was found in. Nil: in none.
	Secret *Object

	// ServiceAccount whose token a credential provider turned into it. Nil:
	// none was.
	ServiceAccount *Object

	// Hash tells the content from another one, as a SHA-256 in hex, for
	// records and back-off. Empty for what changes without anybody's doing,
	// such as tokens: then only the Secret or ServiceAccount counts.
	Hash string
}

// String tells whose the credential is, and nothing of its content.
func (c Credential) String() string {
	switch {
	case c.Secret != nil:
		return "credential of secret " + c.Secret.Namespace + "/" + c.Secret.Name
	case c.ServiceAccount != nil:
		return "credential of service account " + c.ServiceAccount.Namespace + "/" + c.ServiceAccount.Name
	}
	return "credential of the node"
}

// An Object names a secret or service account.
type Object struct {
	Namespace, Name, UID string
}

// fingerprint is equal for lists of credentials that a registry cannot tell
// apart: what is sent, in the same order.
func fingerprint(creds []Credential) string {
	h := sha256.New()
	for _, c := range creds {
		a := c.Auth // its getters take nil
		for _, field := range []string{
			a.GetUsername(), a.GetPassword(), a.GetAuth(), a.GetServerAddress(), a.GetIdentityToken(), a.GetRegistryToken(),
		} {
			h.Write([]byte(strconv.Quote(field)))
		}
		h.Write([]byte{'\n'})
	}
	return hex.EncodeToString(h.Sum(nil))
}

// identity is equal for the credentials of a pod as long as nobody changed them
// (lq-17). Unlike the fingerprint it does not see tokens that are renewed.
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

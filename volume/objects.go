package volume

import (
	"context"
	"errors"
	"io/fs"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Plugins fetch the API objects that volumes are made from through the interfaces below.
// kube/client implements all of them, volume/objectdir the first. Certificates of pods are requested
// through the Requests of volume/certificate.
//
// SetUp calls their methods concurrently. A method may block until ctx is done. Callers do not
// modify the result. If an object does not exist, the error must satisfy [IsNotFound]; an optional
// source is then skipped. The text of an error becomes part of an event of the pod.
//
// The implementation calls [Manager.ObjectChanged] when an object changes.

// Objects returns ConfigMaps and Secrets.
type Objects interface {
	ConfigMap(ctx context.Context, namespace, name string) (*v1.ConfigMap, error)
	Secret(ctx context.Context, namespace, name string) (*v1.Secret, error)
}

// Tokens requests tokens of service accounts.
type Tokens interface {
	// Token requests a token from the API server and returns the response, whose Status has
	// the token and its expiration. Each call requests a new token; see volume/token for a
	// cache.
	Token(ctx context.Context, namespace, serviceAccount string, request *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error)
}

// TrustBundles returns the certificates of ClusterTrustBundles, as PEM, from the version of the API
// that the server has.
type TrustBundles interface {
	// ClusterTrustBundle returns the bundle with the name.
	ClusterTrustBundle(ctx context.Context, name string) (pem string, err error)

	// ClusterTrustBundles returns the bundles of a signer that match the selector. It is not
	// an error if there are none.
	ClusterTrustBundles(ctx context.Context, signer string, selector labels.Selector) (pems []string, err error)
}

// The kinds of an [ObjectRef] of the plugins of this repository.
const (
	KindConfigMap          = "ConfigMap"
	KindSecret             = "Secret"
	KindClusterTrustBundle = "ClusterTrustBundle"

	// KindPodCertificateRequest identifies the requests of a pod. The name is that of the pod:
	// those of requests are generated.
	KindPodCertificateRequest = "PodCertificateRequest"
)

// IsNotFound reports whether err means that an object does not exist: it is fs.ErrNotExist, or an
// error with a Status method whose Reason is metav1.StatusReasonNotFound.
func IsNotFound(err error) bool {
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	// The package that declares the type of the API server's errors is heavy.
	api, ok := errors.AsType[interface {
		error
		Status() metav1.Status
	}](err)
	return ok && api.Status().Reason == metav1.StatusReasonNotFound
}

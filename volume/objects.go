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

// What volumes are made from is fetched through the interfaces below. The client
// of an API server has them all; without one, volume/objectdir has the first.
//
// Their methods are called by SetUp, from many goroutines, and may wait until ctx
// ends. What they return is shared: it isn't changed. Of an object that does not
// exist the error is one that the API server gives (StatusReasonNotFound), or that
// Is fs.ErrNotExist: what is optional is then left out (vol-43, oc-8); its text
// becomes part of the pod's event.
//
// Who has the objects tells of changes: it calls [Manager.ObjectChanged] (F-43).

// Objects get ConfigMaps and Secrets.
type Objects interface {
	ConfigMap(ctx context.Context, namespace, name string) (*v1.ConfigMap, error)
	Secret(ctx context.Context, namespace, name string) (*v1.Secret, error)
}

// Tokens are asked for in the name of service accounts.
type Tokens interface {
	// Token asks the API server for what request says, and returns the answer,
	// whose Status has the token and its end. Each call gets a new one: see
	// volume/token for a cache.
	Token(ctx context.Context, namespace, serviceAccount string, request *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error)
}

// TrustBundles get the certificates of ClusterTrustBundles, in PEM as the objects
// have them, of whichever version of the API there is (vol-57).
type TrustBundles interface {
	// ClusterTrustBundle returns the one of that name.
	ClusterTrustBundle(ctx context.Context, name string) (pem string, err error)

	// ClusterTrustBundles returns those of a signer that match the selector.
	// That there are none is no error.
	ClusterTrustBundles(ctx context.Context, signer string, selector labels.Selector) (pems []string, err error)
}

// The kinds of objects whose changes matter to volumes, as [Manager.ObjectChanged]
// takes them.
const (
	KindConfigMap             = "ConfigMap"
	KindSecret                = "Secret"
	KindClusterTrustBundle    = "ClusterTrustBundle"
	KindPersistentVolumeClaim = "PersistentVolumeClaim"
	KindPersistentVolume      = "PersistentVolume"
)

// NotFound reports whether err says that an object does not exist. An error of the
// API server is known by what it can do: the package of its type is heavy.
func IsNotFound(err error) bool {
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	api, ok := errors.AsType[interface {
		error
		Status() metav1.Status
	}](err)
	return ok && api.Status().Reason == metav1.StatusReasonNotFound
}

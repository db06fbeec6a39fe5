package options

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
)

// LocalObjects are the ConfigMaps and Secrets of a kubelet without an API server: those of a directory,
// or of a Source.
type LocalObjects struct {
	// Dir is a directory of ConfigMaps and Secrets for static pods (package volume/objectdir).
	// It is not used with a cluster. Empty: there are none.
	Dir string

	// Source has the objects instead; with Dir or a cluster it is an error. The caller calls
	// Kubelet.ObjectChanged when an object has changed. Nil: there are none.
	Source Objects
}

// Objects are what pods refer to by name, on a node without an API server: the cache of a product, a
// directory (objectdir.Dir), or the objects of another API server (client.Objects). If a type also has
// the method Services of cri.Objects, containers have the environment variables of services.
//
// The methods are called when a container is created and when a volume is set up or updated, from
// several goroutines. They may block until ctx is done. The objects are not modified. If an object does
// not exist, the error must have the API status reason NotFound, or errors.Is(err, fs.ErrNotExist) must
// be true.
type Objects interface {
	ConfigMap(ctx context.Context, namespace, name string) (*v1.ConfigMap, error)
	Secret(ctx context.Context, namespace, name string) (*v1.Secret, error)

	// Token requests a token of a service account, for a projected volume.
	Token(ctx context.Context, namespace, serviceAccount string, request *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error)
}

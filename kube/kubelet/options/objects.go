package options

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
)

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

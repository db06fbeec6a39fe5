package payload

import (
	"context"

	v1 "k8s.io/api/core/v1"
)

// Objects returns ConfigMaps and Secrets. kube/client and volume/objectdir implement it.
//
// Its methods are called concurrently, and may block until ctx is done. Callers do not
// modify the result. If an object does not exist, the error must satisfy podenv.IsNotFound; an optional
// source is then skipped. The text of an error becomes part of an event of the pod.
type Objects interface {
	ConfigMap(ctx context.Context, namespace, name string) (*v1.ConfigMap, error)
	Secret(ctx context.Context, namespace, name string) (*v1.Secret, error)
}

// The kinds of the objects that [References] returns.
const (
	KindConfigMap          = "ConfigMap"
	KindSecret             = "Secret"
	KindClusterTrustBundle = "ClusterTrustBundle"

	// KindPodCertificateRequest identifies the requests of a pod. The name is the pod's:
	// those of requests are generated.
	KindPodCertificateRequest = "PodCertificateRequest"
)

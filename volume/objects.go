package volume

import (
	"context"
	"errors"
	"io/fs"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Plugins fetch the API objects that volumes are made from through [Objects] and the
// interfaces of volume/projected, volume/token and volume/certificate. kube/client implements all of
// them, volume/objectdir the first.
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

// The kinds of the objects of [ObjectReferrer] of the plugins of this repository.
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

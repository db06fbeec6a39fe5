package payload

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"

	v1 "k8s.io/api/core/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/atomic"
)

// Getters get what the sources of a projected volume refer to, in the pod's
// namespace. A nil func is an error of each source that needs it.
type Getters struct {
	ConfigMap func(name string) (*v1.ConfigMap, error)
	Secret    func(name string) (*v1.Secret, error)

	// Token returns a token of the pod's service account.
	Token func(*v1.ServiceAccountTokenProjection) (string, error)

	// TrustBundles returns the bundles that a source selects, in PEM. None is no
	// error by itself; a name that doesn't exist is one, as volume.IsNotFound knows it.
	TrustBundles func(*v1.ClusterTrustBundleProjection) ([]string, error)
}

// Owners say for whom a projected volume is made.
type Owners struct {
	// FSUser is the user that all containers run as; nil: there is no such.
	FSUser *int64

	// FSGroup is the pod's; nil: it has none.
	FSGroup *int64
}

// private is the mode of what is for the owner alone: a token if it is known whose
// it is, or if the group gets to it by the walk that follows (vol-55).
const private fs.FileMode = 0o600

// Projected returns the files of all sources, merged in order: a later one
// overwrites an earlier one of the same path. The error lists what is wrong with
// any source; then there are no files (vol-54).
func Projected(pod *v1.Pod, source *v1.ProjectedVolumeSource, allocatable v1.ResourceList, get Getters, owners Owners) (atomic.Payload, error) {
	files := atomic.Payload{}
	var errs []error
	for i := range source.Sources {
		some, err := projection(pod, &source.Sources[i], Defaults{Mode: source.DefaultMode, User: source.DefaultUser}, allocatable, get, owners)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		maps.Copy(files, some)
	}
	if err := utilerrors.NewAggregate(errs); err != nil {
		return nil, err
	}
	return files, nil
}

func projection(pod *v1.Pod, from *v1.VolumeProjection, of Defaults, allocatable v1.ResourceList, get Getters, owners Owners) (atomic.Payload, error) {
	switch {
	case from.Secret != nil:
		optional := is(from.Secret.Optional)
		secret, err := fetch(get.Secret, from.Secret.Name, optional, "secret")
		if err != nil {
			return nil, err
		}
		return Secret(secret, from.Secret.Items, of, optional)
	case from.ConfigMap != nil:
		optional := is(from.ConfigMap.Optional)
		cm, err := fetch(get.ConfigMap, from.ConfigMap.Name, optional, "configMap")
		if err != nil {
			return nil, err
		}
		return ConfigMap(cm, from.ConfigMap.Items, of, optional)
	case from.DownwardAPI != nil:
		return DownwardAPI(pod, from.DownwardAPI.Items, of, allocatable)
	case from.ServiceAccountToken != nil:
		if get.Token == nil {
			return nil, errors.New("failed to fetch token: nothing here gives tokens of service accounts")
		}
		token, err := get.Token(from.ServiceAccountToken)
		if err != nil {
			return nil, err
		}
		return atomic.Payload{from.ServiceAccountToken.Path: credential([]byte(token), of, from.ServiceAccountToken.User, owners)}, nil
	case from.ClusterTrustBundle != nil:
		pem, err := trustBundles(from.ClusterTrustBundle, get.TrustBundles)
		if err != nil {
			return nil, err
		}
		return atomic.Payload{from.ClusterTrustBundle.Path: credential(pem, of, from.ClusterTrustBundle.User, owners)}, nil
	case from.PodCertificate != nil:
		return nil, fmt.Errorf("projected source podCertificate (signer %s) is not supported by this agent", from.PodCertificate.SignerName)
	}
	return nil, errors.New("projected volume has a source that names nothing that is supported")
}

// credential is a file that belongs to the user that it or the volume sets, else to the
// user of all containers, if there is one (vol-55, vol-57).
func credential(data []byte, of Defaults, user *int64, owners Owners) atomic.File {
	f := of.file(data, nil, user)
	if f.UID == nil {
		f.UID = owners.FSUser
	}
	if owners.FSUser != nil || owners.FSGroup != nil {
		f.Mode = private
	}
	return f
}

// trustBundles returns the trust anchors that a source selects (vol-57).
func trustBundles(from *v1.ClusterTrustBundleProjection, get func(*v1.ClusterTrustBundleProjection) ([]string, error)) ([]byte, error) {
	optional := is(from.Optional)
	switch {
	case get == nil:
		return nil, errors.New("nothing here gets ClusterTrustBundles")
	case from.Name == nil && from.SignerName == nil:
		return nil, errors.New("ClusterTrustBundle projection requires either name or signerName to be set")
	}
	bundles, err := get(from)
	switch {
	case err != nil && !(optional && volume.IsNotFound(err)):
		return nil, fmt.Errorf("while getting ClusterTrustBundle: %w", err)
	case err == nil && len(bundles) == 0 && !optional:
		return nil, errors.New("combination of signerName and labelSelector matched zero ClusterTrustBundles")
	case err != nil:
		bundles = nil
	}
	return TrustAnchors(bundles)
}

// fetch returns the object, or nil if it doesn't exist and need not.
func fetch[T any](get func(string) (*T, error), name string, optional bool, kind string) (*T, error) {
	if get == nil {
		return nil, fmt.Errorf("couldn't get %s %s, no kubeClient defined", kind, name)
	}
	object, err := get(name)
	if err != nil && !(optional && volume.IsNotFound(err)) {
		return nil, err
	}
	if err != nil {
		return nil, nil
	}
	return object, nil
}

func is(b *bool) bool { return b != nil && *b }

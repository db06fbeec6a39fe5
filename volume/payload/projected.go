package payload

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/kubeparts/kubeparts/runtime/podenv"
	"github.com/kubeparts/kubeparts/volume/atomic"
)

// Sources fetches what the sources of a projected volume refer to, in the pod's namespace.
type Sources interface {
	ConfigMap(name string) (*v1.ConfigMap, error)
	Secret(name string) (*v1.Secret, error)

	// Token returns a token of the pod's service account.
	Token(from *v1.ServiceAccountTokenProjection) (string, error)

	// TrustBundles returns the bundles that a source selects, as PEM. If a named bundle does
	// not exist, it returns an error that satisfies podenv.IsNotFound.
	TrustBundles(from *v1.ClusterTrustBundleProjection) ([]string, error)

	// Certificate returns the private key and the certificate chain, as PEM, of the source with
	// an index.
	Certificate(index int, from *v1.PodCertificateProjection) (key, chain []byte, err error)
}

// Owners are the owners of the credentials of a projected volume.
type Owners struct {
	// FSUser is the user that all containers of the pod run as; nil if they differ.
	FSUser *int64

	// FSGroup is the fsGroup of the pod, or nil.
	FSGroup *int64
}

// private is the mode of credentials whose owner is known, or to which the fsGroup is applied
// afterwards (rule vol-55).
const private fs.FileMode = 0o600

// Projected returns the merged files of all sources. A later source overrides an earlier one with the
// same path. The error contains the errors of all sources.
func Projected(pod *v1.Pod, source *v1.ProjectedVolumeSource, allocatable v1.ResourceList, get Sources, owners Owners) (atomic.Payload, error) {
	files := atomic.Payload{}
	var errs []error
	for i := range source.Sources {
		some, err := projection(pod, source, i, allocatable, get, owners)
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

// projection returns the files of the source with an index.
func projection(pod *v1.Pod, source *v1.ProjectedVolumeSource, index int, allocatable v1.ResourceList, get Sources, owners Owners) (atomic.Payload, error) {
	from, of := &source.Sources[index], Defaults{Mode: source.DefaultMode, User: source.DefaultUser}
	switch {
	case from.Secret != nil:
		optional := is(from.Secret.Optional)
		secret, err := fetch(get.Secret, from.Secret.Name, optional)
		if err != nil {
			return nil, err
		}
		return Secret(secret, from.Secret.Items, of, optional)
	case from.ConfigMap != nil:
		optional := is(from.ConfigMap.Optional)
		cm, err := fetch(get.ConfigMap, from.ConfigMap.Name, optional)
		if err != nil {
			return nil, err
		}
		return ConfigMap(cm, from.ConfigMap.Items, of, optional)
	case from.DownwardAPI != nil:
		return DownwardAPI(pod, from.DownwardAPI.Items, of, allocatable)
	case from.ServiceAccountToken != nil:
		token, err := get.Token(from.ServiceAccountToken)
		if err != nil {
			return nil, err
		}
		return atomic.Payload{from.ServiceAccountToken.Path: credential([]byte(token), of, from.ServiceAccountToken.User, owners)}, nil
	case from.ClusterTrustBundle != nil:
		pem, err := trustBundles(from.ClusterTrustBundle, get)
		if err != nil {
			return nil, err
		}
		return atomic.Payload{from.ClusterTrustBundle.Path: credential(pem, of, from.ClusterTrustBundle.User, owners)}, nil
	case from.PodCertificate != nil:
		key, chain, err := get.Certificate(index, from.PodCertificate)
		if err != nil {
			return nil, err
		}
		return certificate(from.PodCertificate, key, chain, of, owners), nil
	}
	return nil, errors.New("projected volume has an unsupported source")
}

// credential returns a file owned by the user that it or the volume specifies, else by owners.FSUser.
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

// certificate returns the files of a private key and its certificate chain (rule vol-58).
func certificate(from *v1.PodCertificateProjection, key, chain []byte, of Defaults, owners Owners) atomic.Payload {
	files := atomic.Payload{}
	for path, data := range map[string][]byte{
		from.CredentialBundlePath: slices.Concat(key, chain), from.KeyPath: key, from.CertificateChainPath: chain,
	} {
		if path != "" {
			files[path] = credential(data, of, from.User, owners)
		}
	}
	return files
}

// trustBundles returns the trust anchors that a source selects.
func trustBundles(from *v1.ClusterTrustBundleProjection, get Sources) ([]byte, error) {
	optional := is(from.Optional)
	if from.Name == nil && from.SignerName == nil {
		return nil, errors.New("ClusterTrustBundle projection requires either name or signerName to be set")
	}
	bundles, err := get.TrustBundles(from)
	switch {
	case err != nil && !(optional && podenv.IsNotFound(err)):
		return nil, fmt.Errorf("while getting ClusterTrustBundle: %w", err)
	case err == nil && len(bundles) == 0 && !optional:
		return nil, errors.New("combination of signerName and labelSelector matched zero ClusterTrustBundles")
	case err != nil:
		bundles = nil
	}
	return TrustAnchors(bundles)
}

// fetch returns the object, or nil if it does not exist and is optional.
func fetch[T any](get func(string) (*T, error), name string, optional bool) (*T, error) {
	object, err := get(name)
	if err != nil && !(optional && podenv.IsNotFound(err)) {
		return nil, err
	}
	if err != nil {
		return nil, nil
	}
	return object, nil
}

func is(b *bool) bool { return b != nil && *b }

package cri

import (
	"context"
	"errors"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/credentials"
	"github.com/kubeparts/kubeparts/runtime/cri/images"
	"github.com/kubeparts/kubeparts/runtime/podenv"
)

// pullCredentials returns the credentials of a pod: those in its imagePullSecrets, then
// those of the node.
type pullCredentials struct{ *Runtime }

// Lookup implements [images.Credentials].
func (k pullCredentials) Lookup(ctx context.Context, image string, pod *v1.Pod) ([]images.Credential, error) {
	secrets, missing := k.pullSecrets(ctx, pod)
	own, broken := credentials.FromSecrets(secrets)
	rings := credentials.Union{own}
	if k.cfg.Pulls.Keyring != nil {
		rings = append(rings, k.cfg.Pulls.Keyring)
	}
	found, err := rings.Lookup(ctx, image, pod)
	list := make([]images.Credential, len(found))
	for i, c := range found {
		list[i] = credential(c)
	}
	return list, errors.Join(missing, broken, err)
}

// pullSecrets returns the imagePullSecrets of the pod. Secrets that cannot be read are
// reported as an event and an error; the others are returned.
func (k pullCredentials) pullSecrets(ctx context.Context, pod *v1.Pod) ([]v1.Secret, error) {
	var secrets []v1.Secret
	var names []string
	var errs []error
	for _, ref := range pod.Spec.ImagePullSecrets {
		if ref.Name == "" {
			continue // the API server permits empty names
		}
		secret, err := (*v1.Secret)(nil), podenv.ErrNoClient
		if k.cfg.Providers.Objects != nil {
			secret, err = k.cfg.Providers.Objects.Secret(ctx, pod.Namespace, ref.Name)
		}
		if err == nil && secret == nil {
			err = errors.New("Objects returned no secret")
		}
		if err != nil {
			names = append(names, ref.Name)
			errs = append(errs, fmt.Errorf("couldn't get secret %v/%v: %w", pod.Namespace, ref.Name, err))
			continue
		}
		secrets = append(secrets, *secret)
	}
	if names != nil && ctx.Err() == nil {
		k.record(runtime.PodRef(pod), v1.EventTypeWarning, "FailedToRetrieveImagePullSecret", fmt.Sprintf(
			"Unable to retrieve some image pull secrets (%s); attempting to pull the image may not succeed.", strings.Join(names, ", ")))
	}
	return secrets, errors.Join(errs...)
}

// credential converts a credential. A credential of a plugin has no hash, because its
// content changes with every token.
func credential(c credentials.Credential) images.Credential {
	out := images.Credential{
		Auth: &runtimeapi.AuthConfig{
			Username: c.Username, Password: c.Password, Auth: c.Auth,
			ServerAddress: c.ServerAddress, IdentityToken: c.IdentityToken, RegistryToken: c.RegistryToken,
		},
	}
	if c.Source.Plugin == "" {
		out.Hash = c.Hash()
	}
	object := &images.Object{Namespace: c.Source.Namespace, Name: c.Source.Name, UID: string(c.Source.UID)}
	switch c.Source.Kind {
	case credentials.SourceSecret:
		out.Secret = object
	case credentials.SourceServiceAccount:
		out.ServiceAccount = object
	}
	return out
}

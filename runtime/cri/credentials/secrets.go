package credentials

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// PullSecrets is the keyring of a pod's pull secrets.
type PullSecrets struct {
	entries []entry
}

// FromSecrets reads the pull secrets of a pod, of the types
// kubernetes.io/dockerconfigjson and kubernetes.io/dockercfg, in the order of
// spec.imagePullSecrets.
//
// The keyring is never nil: it has what could be read. The error, if there is
// one, names each secret and key that could not, or that is no pull secret.
func FromSecrets(secrets []v1.Secret) (*PullSecrets, error) {
	k := new(PullSecrets)
	var errs []error
	for i := range secrets {
		entries, err := readSecret(&secrets[i])
		k.entries = append(k.entries, entries...)
		if err != nil {
			errs = append(errs, err)
		}
	}
	return k, errors.Join(errs...)
}

func readSecret(s *v1.Secret) ([]entry, error) {
	where := fmt.Sprintf("credentials: secret %s/%s", s.Namespace, s.Name)
	var key string
	parse := parseDockerConfigJSON
	switch s.Type {
	case v1.SecretTypeDockerConfigJson:
		key = v1.DockerConfigJsonKey
	case v1.SecretTypeDockercfg:
		key, parse = v1.DockerConfigKey, parseDockercfg
	default:
		return nil, fmt.Errorf("%s: type %q is not that of a pull secret", where, s.Type)
	}
	data := s.Data[key]
	if len(data) == 0 {
		return nil, fmt.Errorf("%s: key %s is missing or empty", where, key)
	}
	cfg, err := parse(data)
	if err != nil {
		err = fmt.Errorf("%s: key %s: %w", where, key, err)
	}
	if cfg == nil {
		return nil, err
	}
	if !cfg.auths {
		return nil, fmt.Errorf("%s: key %s: has no auths", where, key)
	}
	return from(cfg.entries, Source{
		Kind: SourceSecret, Namespace: s.Namespace, Name: s.Name, UID: string(s.UID), Key: key,
	}), err
}

// Lookup implements Keyring. The entries of all secrets compete: the most
// specific is first, whichever secret has it.
func (k *PullSecrets) Lookup(_ context.Context, image string, _ *v1.Pod) ([]Credential, error) {
	t, err := parseImage(image)
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	return pick(k.entries, t), nil
}

// Format prints how many entries there are, whatever the verb.
func (k *PullSecrets) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "pull secrets with %d entries", len(k.entries))
}

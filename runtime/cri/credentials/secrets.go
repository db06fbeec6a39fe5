package credentials

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// PullSecrets is the keyring of a pod's pull secrets. Safe for concurrent use.
type PullSecrets struct {
	entries []entry
}

// FromSecrets returns the keyring of pull secrets, of the types kubernetes.io/dockerconfigjson
// and kubernetes.io/dockercfg, in the order of spec.imagePullSecrets.
//
// The keyring is never nil: it has the valid entries. The error names each secret and key that
// is invalid or not a pull secret.
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
		return nil, fmt.Errorf("%s: type %q is not a pull secret type", where, s.Type)
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
		return nil, fmt.Errorf("%s: key %s: no auths", where, key)
	}
	return withSource(cfg.entries, Source{
		Kind: SourceSecret, Namespace: s.Namespace, Name: s.Name, UID: string(s.UID), Key: key,
	}), err
}

// Lookup implements Keyring. The most specific entry of all secrets is first.
func (k *PullSecrets) Lookup(_ context.Context, image string, _ *v1.Pod) ([]Credential, error) {
	t, err := parseImage(image)
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	return matching(k.entries, t), nil
}

// Format prints the number of entries, for any verb.
func (k *PullSecrets) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "pull secrets with %d entries", len(k.entries))
}

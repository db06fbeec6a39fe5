package images

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/internal/checkpoint"
)

// The records have the JSON format of the kubelet's API kubelet.config.k8s.io/v1beta1. That of
// v1alpha1 differs in the version only.
const (
	recordGroup   = "kubelet.config.k8s.io/"
	recordVersion = recordGroup + "v1beta1"
	intentKind    = "ImagePullIntent"
	pulledKind    = "ImagePulledRecord"
)

// An intent records that a pull of the image began.
type intent struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Image      string `json:"image"`
}

// A pulledRecord records the credentials with which an image was pulled, by repository as
// spelled in the pod. Without any and without nodePodsAccessible, all pods must present
// credentials.
type pulledRecord struct {
	Kind              string                 `json:"kind"`
	APIVersion        string                 `json:"apiVersion"`
	LastUpdatedTime   time.Time              `json:"lastUpdatedTime"`
	ImageRef          string                 `json:"imageRef"`
	CredentialMapping map[string]pullerProof `json:"credentialMapping"`
}

// A pullerProof records the credentials that a repository accepted.
type pullerProof struct {
	Secrets            []secretProof  `json:"kubernetesSecrets,omitempty"`
	ServiceAccounts    []accountProof `json:"kubernetesServiceAccounts,omitempty"`
	NodePodsAccessible bool           `json:"nodePodsAccessible,omitempty"`
}

type secretProof struct {
	UID            string `json:"uid"`
	Namespace      string `json:"namespace"`
	Name           string `json:"name"`
	CredentialHash string `json:"credentialHash"`
}

type accountProof struct {
	UID       string `json:"uid"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

func (s secretProof) isOf(o *Object) bool {
	return s.UID == o.UID && s.Namespace == o.Namespace && s.Name == o.Name
}

// maxProofs limits the proofs of a repository that are added without a pull.
const maxProofs = 100

// proof returns the proof of a repository in any spelling.
func (r *pulledRecord) proof(repository string) (key string, p pullerProof) {
	if p, ok := r.CredentialMapping[repository]; ok {
		return repository, p
	}
	for key, p := range r.CredentialMapping {
		if fullName(key) == fullName(repository) {
			return key, p
		}
	}
	return repository, pullerProof{}
}

// isPublic reports whether all pods of the node may use the image.
func (r *pulledRecord) isPublic(repository string) bool {
	_, p := r.proof(repository)
	return p.NodePodsAccessible
}

// matches reports whether the image was pulled with one of the credentials. add is one that
// must be recorded because it matches partly: the same secret with other content, or the same
// content in another secret.
func (r *pulledRecord) matches(repository string, creds []Credential) (matches bool, add *Credential) {
	_, p := r.proof(repository)
	for i := range creds {
		c := &creds[i]
		if c.ServiceAccount != nil && slices.Contains(p.ServiceAccounts, accountProof(proofOf(c.ServiceAccount))) {
			return true, nil
		}
		if c.Secret == nil {
			continue
		}
		for _, s := range p.Secrets {
			same, content := s.isOf(c.Secret), c.Hash != "" && s.CredentialHash == c.Hash
			if same && content {
				return true, nil
			}
			if same || content {
				matches, add = true, c
			}
		}
	}
	if len(p.Secrets) > maxProofs {
		add = nil
	}
	return matches, add
}

func proofOf(o *Object) accountProof { return accountProof{o.UID, o.Namespace, o.Name} }

// with returns a copy of the record with the credential, or r if it has the credential. Nil
// means an anonymous pull.
func (r *pulledRecord) with(repository string, c *Credential) *pulledRecord {
	key, p := r.proof(repository)
	switch {
	case p.NodePodsAccessible:
		return r
	case c == nil || c.Secret == nil && c.ServiceAccount == nil:
		p = pullerProof{NodePodsAccessible: true}
	case c.Secret != nil:
		proof := secretProof{c.Secret.UID, c.Secret.Namespace, c.Secret.Name, c.Hash}
		if slices.Contains(p.Secrets, proof) {
			return r
		}
		p.Secrets = append(slices.DeleteFunc(slices.Clone(p.Secrets), func(s secretProof) bool { return s.isOf(c.Secret) }), proof)
	default:
		if slices.Contains(p.ServiceAccounts, proofOf(c.ServiceAccount)) {
			return r
		}
		p.ServiceAccounts = append(slices.Clone(p.ServiceAccounts), proofOf(c.ServiceAccount))
	}
	made := newPulled(r.ImageRef)
	for k, v := range r.CredentialMapping {
		made.CredentialMapping[k] = v
	}
	made.CredentialMapping[key] = p
	return made
}

func newPulled(ref string) *pulledRecord {
	return &pulledRecord{
		Kind: pulledKind, APIVersion: recordVersion, ImageRef: ref, CredentialMapping: map[string]pullerProof{},
		LastUpdatedTime: time.Now().UTC().Truncate(time.Second),
	}
}

// filePrefix is the prefix of the names of record files.
const filePrefix = "sha256-"

// fileOf returns the name of the record file of an image or image reference.
func fileOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return filePrefix + hex.EncodeToString(sum[:])
}

func parsePulled(data []byte) (*pulledRecord, error) {
	var r pulledRecord
	if err := parse(data, &r); err != nil {
		return nil, err
	}
	if r.Kind != pulledKind || !strings.HasPrefix(r.APIVersion, recordGroup) || r.ImageRef == "" {
		return nil, fmt.Errorf("expected a %s of %s with an imageRef, got kind %q, apiVersion %q, imageRef %q", pulledKind, recordVersion, r.Kind, r.APIVersion, r.ImageRef)
	}
	return &r, nil
}

func parseIntent(data []byte) (*intent, error) {
	var i intent
	if err := parse(data, &i); err != nil {
		return nil, err
	}
	if i.Kind != intentKind || !strings.HasPrefix(i.APIVersion, recordGroup) || i.Image == "" {
		return nil, fmt.Errorf("expected an %s of %s with an image, got kind %q, apiVersion %q, image %q", intentKind, recordVersion, i.Kind, i.APIVersion, i.Image)
	}
	return &i, nil
}

func parse(data []byte, into any) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return errors.New("empty file")
	}
	return json.Unmarshal(data, into)
}

// write replaces a file atomically.
func write(path string, record any) error {
	data, err := json.Marshal(record)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return checkpoint.Replace(path, data, 0o600)
}

// isRecord reports whether a file of the name is a record, not a temporary file.
func isRecord(name string) bool {
	return strings.HasPrefix(name, filePrefix) && !strings.HasSuffix(name, checkpoint.Temporary)
}

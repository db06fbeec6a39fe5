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

// The records of the kubelet's API kubelet.config.k8s.io/v1beta1, as JSON. Those
// of v1alpha1 differ in the version only.
const (
	recordGroup   = "kubelet.config.k8s.io/"
	recordVersion = recordGroup + "v1beta1"
	intentKind    = "ImagePullIntent"
	pulledKind    = "ImagePulledRecord"
)

// An intent says that a pull of the image was begun.
type intent struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Image      string `json:"image"`
}

// A pulledRecord says with which credentials an image was pulled, by the
// repository it was pulled from as the pod spelled it. With none, and without
// nodePodsAccessible, everybody has to show theirs.
type pulledRecord struct {
	Kind              string                 `json:"kind"`
	APIVersion        string                 `json:"apiVersion"`
	LastUpdatedTime   time.Time              `json:"lastUpdatedTime"`
	ImageRef          string                 `json:"imageRef"`
	CredentialMapping map[string]pullerProof `json:"credentialMapping"`
}

// A pullerProof is what a repository let an image go for.
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

func (s secretProof) is(o *Object) bool {
	return s.UID == o.UID && s.Namespace == o.Namespace && s.Name == o.Name
}

// maxProofs bounds what is added to a repository's proofs without a pull.
const maxProofs = 100

// of returns the proof of a repository, however it is spelled.
func (r *pulledRecord) of(repository string) (key string, p pullerProof) {
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

// open reports whether every pod of the node may use the image.
func (r *pulledRecord) open(repository string) bool {
	_, p := r.of(repository)
	return p.NodePodsAccessible
}

// knows reports whether the image was pulled with one of the credentials, and
// returns the one that has to be added because it is only nearly the same: the
// secret of before with new content, or its content in another secret.
func (r *pulledRecord) knows(repository string, creds []Credential) (known bool, add *Credential) {
	_, p := r.of(repository)
	for i := range creds {
		c := &creds[i]
		if c.ServiceAccount != nil && slices.Contains(p.ServiceAccounts, accountProof(proofOf(c.ServiceAccount))) {
			return true, nil
		}
		if c.Secret == nil {
			continue
		}
		for _, s := range p.Secrets {
			same, content := s.is(c.Secret), c.Hash != "" && s.CredentialHash == c.Hash
			if same && content {
				return true, nil
			}
			if same || content {
				known, add = true, c
			}
		}
	}
	if len(p.Secrets) > maxProofs {
		add = nil
	}
	return known, add
}

func proofOf(o *Object) accountProof { return accountProof{o.UID, o.Namespace, o.Name} }

// with returns a copy of the record to which the credential is added, or the
// same record if it has it already. Nil is an anonymous pull.
func (r *pulledRecord) with(repository string, c *Credential) *pulledRecord {
	key, p := r.of(repository)
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
		p.Secrets = append(slices.DeleteFunc(slices.Clone(p.Secrets), func(s secretProof) bool { return s.is(c.Secret) }), proof)
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

// filePrefix begins the name of each record's file.
const filePrefix = "sha256-"

// fileOf is the name of the record of an image or its reference.
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
		return nil, fmt.Errorf("want a %s of %s with an imageRef, have kind %q, apiVersion %q, imageRef %q", pulledKind, recordVersion, r.Kind, r.APIVersion, r.ImageRef)
	}
	return &r, nil
}

func parseIntent(data []byte) (*intent, error) {
	var i intent
	if err := parse(data, &i); err != nil {
		return nil, err
	}
	if i.Kind != intentKind || !strings.HasPrefix(i.APIVersion, recordGroup) || i.Image == "" {
		return nil, fmt.Errorf("want an %s of %s with an image, have kind %q, apiVersion %q, image %q", intentKind, recordVersion, i.Kind, i.APIVersion, i.Image)
	}
	return &i, nil
}

func parse(data []byte, into any) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return errors.New("it is empty")
	}
	return json.Unmarshal(data, into)
}

// write replaces a file as a whole, so that a crash leaves the old one or the
// new one.
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

// isRecord reports whether a file of that name is a record of ours, and not one
// half written.
func isRecord(name string) bool {
	return strings.HasPrefix(name, filePrefix) && !strings.HasSuffix(name, checkpoint.Temporary)
}

package credentials

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// A Provider is a credential provider plugin, as CredentialProviderConfig
// (kubelet.config.k8s.io) describes it.
type Provider struct {
	// Name is the file name of the plugin in the directory of plugins.
	Name string

	// MatchImages are the patterns of the images that the plugin is asked for;
	// see Match.
	MatchImages []string

	// DefaultCacheDuration is how long an answer is kept that does not say so
	// itself. Zero: it is not kept.
	DefaultCacheDuration time.Duration

	// APIVersion is the version of the credentialprovider.kubelet.k8s.io API that
	// the plugin speaks: v1, v1beta1 or v1alpha1 with the group before it.
	APIVersion string

	// Args are the arguments of the plugin.
	Args []string

	// Env is added to the environment of the plugin; it goes before what is
	// there.
	Env []EnvVar

	// TokenAttributes has the plugin speak for the service account of a pod
	// (KEP-4412). Nil: it speaks for the node.
	TokenAttributes *TokenAttributes
}

// An EnvVar is a variable of a plugin's environment.
type EnvVar struct{ Name, Value string }

// TokenAttributes says which token of a pod's service account a plugin gets.
type TokenAttributes struct {
	// Audience is whom the token is for; required.
	Audience string

	// CacheType says how far an answer goes.
	CacheType CacheType

	// RequireServiceAccount leaves the plugin out for pods without service
	// account, static pods for example. Otherwise it is asked without a token.
	RequireServiceAccount bool

	// RequiredAnnotations are the keys of annotations that the service account
	// has to have for the plugin to be asked; OptionalAnnotations are those that
	// it may have. Both are given to the plugin.
	RequiredAnnotations, OptionalAnnotations []string
}

// A CacheType says whom an answer to a token is for.
type CacheType string

const (
	// CacheByToken keeps an answer for that very token, and so for one pod.
	CacheByToken CacheType = "Token"

	// CacheByServiceAccount keeps an answer for all pods of the service account.
	CacheByServiceAccount CacheType = "ServiceAccount"
)

// The file format. Versions differ in nothing that is read here.
type providerFile struct {
	metav1.TypeMeta `json:",inline"`
	Providers       []struct {
		Name                 string           `json:"name"`
		MatchImages          []string         `json:"matchImages"`
		DefaultCacheDuration *metav1.Duration `json:"defaultCacheDuration"`
		APIVersion           string           `json:"apiVersion"`
		Args                 []string         `json:"args"`
		Env                  []struct {
			Name  string `json:"name"`
			Value string `json:"value"`
		} `json:"env"`
		TokenAttributes *struct {
			Audience              string    `json:"serviceAccountTokenAudience"`
			CacheType             CacheType `json:"cacheType"`
			RequireServiceAccount *bool     `json:"requireServiceAccount"`
			RequiredAnnotations   []string  `json:"requiredServiceAccountAnnotationKeys"`
			OptionalAnnotations   []string  `json:"optionalServiceAccountAnnotationKeys"`
		} `json:"tokenAttributes"`
	} `json:"providers"`
}

// configVersions are the versions of the file format.
var configVersions = []string{
	"kubelet.config.k8s.io/v1",
	"kubelet.config.k8s.io/v1beta1",
	"kubelet.config.k8s.io/v1alpha1",
}

// ReadProviders reads a CredentialProviderConfig from a file, or from the files
// of a directory whose names end in .json, .yaml or .yml, in the order of their
// names. Directories below it are left out. The error names each file and field
// that is wrong.
func ReadProviders(path string) ([]Provider, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("credentials: provider config %s: %w", path, plain(err))
	}
	files := []string{path}
	if info.IsDir() {
		if files, err = configFiles(path); err != nil {
			return nil, fmt.Errorf("credentials: provider config %s: %w", path, plain(err))
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("credentials: provider config %s: no .json, .yaml or .yml file in it", path)
		}
	}
	var all []Provider
	var errs []error
	owner := map[string]string{} // of a provider's name
	for _, file := range files {
		data, err := readBounded(file)
		if err != nil {
			errs = append(errs, fmt.Errorf("credentials: provider config %s: %w", file, plain(err)))
			continue
		}
		providers, err := ParseProviders(data)
		if err != nil {
			errs = append(errs, fmt.Errorf("credentials: provider config %s: %w", file, err))
			continue
		}
		for _, p := range providers {
			if first, ok := owner[p.Name]; ok {
				errs = append(errs, fmt.Errorf("credentials: provider config %s: provider %q is in %s already", file, p.Name, first))
			}
			owner[p.Name] = file
		}
		all = append(all, providers...)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return all, nil
}

func configFiles(dir string) ([]string, error) {
	list, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range list {
		path := filepath.Join(dir, e.Name())
		// Through a symbolic link, as the files of a mounted ConfigMap are.
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			continue
		}
		if slices.Contains([]string{".json", ".yaml", ".yml"}, filepath.Ext(path)) {
			files = append(files, path)
		}
	}
	return files, nil
}

func readBounded(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("is larger than %d bytes", maxFile)}
	}
	return data, err
}

// ParseProviders reads a CredentialProviderConfig in YAML or JSON. Unknown and
// repeated fields are errors, as is each thing that Validate finds.
func ParseProviders(data []byte) ([]Provider, error) {
	doc, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, err
	}
	var file providerFile
	strict, err := kjson.UnmarshalStrict(doc, &file)
	if err != nil {
		return nil, err
	}
	if file.Kind != "CredentialProviderConfig" {
		return nil, fmt.Errorf("kind: is %q, not CredentialProviderConfig", file.Kind)
	}
	if !slices.Contains(configVersions, file.APIVersion) {
		return nil, fmt.Errorf("apiVersion: is %q, not one of %s", file.APIVersion, strings.Join(configVersions, ", "))
	}
	errs := strict
	var providers []Provider
	for i, f := range file.Providers {
		p := Provider{Name: f.Name, MatchImages: f.MatchImages, APIVersion: f.APIVersion, Args: f.Args}
		at := fmt.Sprintf("providers[%d].", i)
		if f.DefaultCacheDuration == nil {
			errs = append(errs, errors.New(at+"defaultCacheDuration: is required"))
		} else {
			p.DefaultCacheDuration = f.DefaultCacheDuration.Duration
		}
		for _, e := range f.Env {
			p.Env = append(p.Env, EnvVar(e))
		}
		if t := f.TokenAttributes; t != nil {
			p.TokenAttributes = &TokenAttributes{
				Audience: t.Audience, CacheType: t.CacheType,
				RequiredAnnotations: t.RequiredAnnotations, OptionalAnnotations: t.OptionalAnnotations,
			}
			if t.RequireServiceAccount == nil {
				errs = append(errs, errors.New(at+"tokenAttributes.requireServiceAccount: is required"))
			} else {
				p.TokenAttributes.RequireServiceAccount = *t.RequireServiceAccount
			}
		}
		providers = append(providers, p)
	}
	if err := errors.Join(append(errs, validate(providers)...)...); err != nil {
		return nil, err
	}
	return providers, nil
}

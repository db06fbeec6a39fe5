package credentials

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	kubeletconfig "k8s.io/kubelet/config/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/kubeparts/kubeparts/internal/untrusted"
)

// configVersions are the supported API versions of CredentialProviderConfig.
var configVersions = []string{
	"kubelet.config.k8s.io/v1",
	"kubelet.config.k8s.io/v1beta1",
	"kubelet.config.k8s.io/v1alpha1",
}

// ReadProviders reads a CredentialProviderConfig from a file, or from the files of a
// directory with the extension .json, .yaml or .yml, in the order of their names.
// Subdirectories are ignored. The error names each invalid file and field.
func ReadProviders(path string) ([]kubeletconfig.CredentialProvider, error) {
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
			return nil, fmt.Errorf("credentials: provider config %s: no .json, .yaml or .yml file", path)
		}
	}
	var all []kubeletconfig.CredentialProvider
	var errs []error
	definedIn := map[string]string{} // by name of the provider
	for _, file := range files {
		data, err := untrusted.ReadFollow(file, maxFile)
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
			if first, ok := definedIn[p.Name]; ok {
				errs = append(errs, fmt.Errorf("credentials: provider config %s: provider %q is already defined in %s", file, p.Name, first))
			}
			definedIn[p.Name] = file
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
		// Stat follows symbolic links: the files of a mounted ConfigMap are links.
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			continue
		}
		if slices.Contains([]string{".json", ".yaml", ".yml"}, filepath.Ext(path)) {
			files = append(files, path)
		}
	}
	return files, nil
}

// ParseProviders parses and validates a CredentialProviderConfig in YAML or JSON. Unknown
// and duplicate fields are errors.
func ParseProviders(data []byte) ([]kubeletconfig.CredentialProvider, error) {
	doc, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, err
	}
	var file kubeletconfig.CredentialProviderConfig // the versions have the same fields
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
	if err := errors.Join(append(strict, validate(file.Providers)...)...); err != nil {
		return nil, err
	}
	return file.Providers, nil
}

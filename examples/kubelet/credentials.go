package main

import (
	"fmt"
	"os"

	"github.com/kubeparts/kubeparts/runtime/cri/credentials"
)

// nodeCredentials are what this node pulls images with: the docker config files
// that a kubelet would find, and credential provider plugins.
func (a *assembly) nodeCredentials() (credentials.Keyring, error) {
	opts := a.opts
	workDir, _ := os.Getwd() // one that can't be had has no files
	home, _ := os.UserHomeDir()
	files, err := credentials.NewFiles(credentials.FilesConfig{
		Paths: credentials.DefaultPaths(opts.root, workDir, home), Logger: a.logger,
	})
	if err != nil || opts.providers == "" {
		return files, err
	}
	providers, err := credentials.ReadProviders(opts.providers)
	if err != nil {
		return nil, fmt.Errorf("--image-credential-provider-config: %w", err)
	}
	plugins, err := credentials.NewPlugins(credentials.PluginsConfig{Providers: providers, Dir: opts.providerBin, Hooks: a.count.remote.Credentials(), Logger: a.logger})
	if err != nil {
		return nil, fmt.Errorf("--image-credential-provider-config=%s: %w", opts.providers, err)
	}
	if err := plugins.Check(); err != nil {
		return nil, fmt.Errorf("--image-credential-provider-bin-dir=%s: %w", opts.providerBin, err)
	}
	return credentials.Union{files, plugins}, nil
}

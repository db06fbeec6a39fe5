package kubelet

import (
	"fmt"
	"os"

	"github.com/kubeparts/kubeparts/runtime/cri/credentials"
)

// newKeyring returns the credentials of the node for image pulls: the docker config files
// that the kubelet reads, and credential provider plugins.
func newKeyring(b base) (credentials.Keyring, error) {
	workDir, _ := os.Getwd() // without one there is no config file
	home, _ := os.UserHomeDir()
	files, err := credentials.NewFiles(credentials.FilesConfig{
		Paths: credentials.DefaultPaths(b.cfg.RootDir, workDir, home), Logger: b.logger,
	})
	if err != nil || b.cfg.Runtime.CredentialProviderConfig == "" {
		return files, err
	}
	providers, err := credentials.ReadProviders(b.cfg.Runtime.CredentialProviderConfig)
	if err != nil {
		return nil, fmt.Errorf("credential provider config: %w", err)
	}
	plugins, err := credentials.NewPlugins(credentials.PluginsConfig{
		Providers: providers, Dir: b.cfg.Runtime.CredentialProviderBinDir, Hooks: b.metrics.remote.Credentials(), Logger: b.logger,
	})
	if err != nil {
		return nil, fmt.Errorf("credential provider config %s: %w", b.cfg.Runtime.CredentialProviderConfig, err)
	}
	if err := plugins.Check(); err != nil {
		return nil, fmt.Errorf("credential provider directory %s: %w", b.cfg.Runtime.CredentialProviderBinDir, err)
	}
	return credentials.Union{files, plugins}, nil
}

package machine

import (
	"fmt"
	"os"

	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/runtime/cri/credentials"
)

// newKeyring returns the credentials of the node for image pulls: the docker config files
// that the kubelet reads, and credential provider plugins.
func newKeyring(b stores.Base) (credentials.Keyring, error) {
	workDir, _ := os.Getwd() // without one there is no config file
	home, _ := os.UserHomeDir()
	files, err := credentials.NewFiles(credentials.FilesConfig{
		Paths: credentials.DefaultPaths(b.Config.RootDir, workDir, home), Logger: b.Logger,
	})
	if err != nil || b.Config.Runtime.CredentialProviderConfig == "" {
		return files, err
	}
	providers, err := credentials.ReadProviders(b.Config.Runtime.CredentialProviderConfig)
	if err != nil {
		return nil, fmt.Errorf("credential provider config: %w", err)
	}
	plugins, err := credentials.NewPlugins(credentials.PluginsConfig{
		Providers: providers, Dir: b.Config.Runtime.CredentialProviderBinDir, Hooks: b.Metrics.Remote.Credentials(), Logger: b.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("credential provider config %s: %w", b.Config.Runtime.CredentialProviderConfig, err)
	}
	if err := plugins.Check(); err != nil {
		return nil, fmt.Errorf("credential provider directory %s: %w", b.Config.Runtime.CredentialProviderBinDir, err)
	}
	return credentials.Union{files, plugins}, nil
}

//go:build unix

package credentials_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/kubeparts/kubeparts/runtime/cri/credentials"
)

// A plugin of three lines that ignores the request. A real plugin exchanges the node's
// identity, or the token in the request, for a
// password.
const shellPlugin = `#!/bin/sh
cat >/dev/null
echo '{"kind": "CredentialProviderResponse", "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
  "cacheKeyType": "Registry", "cacheDuration": "10m",
  "auth": {"reg.io": {"username": "'$LOGIN'", "password": "s3cret"}}}'
`

const shellConfig = `
apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
- name: shell-plugin
  matchImages: ["*.io"]
  defaultCacheDuration: 1h
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  env: [{name: LOGIN, value: node}]
`

// A plugin runs once for all images of its registry.
func ExamplePlugins() {
	dir, err := os.MkdirTemp("", "plugins")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "shell-plugin"), []byte(shellPlugin), 0o700); err != nil {
		log.Fatal(err)
	}

	providers, err := credentials.ParseProviders([]byte(shellConfig))
	if err != nil {
		log.Fatal(err)
	}
	plugins, err := credentials.NewPlugins(credentials.PluginsConfig{
		Providers: providers,
		Dir:       dir,
		Hooks: credentials.Hooks{PluginRan: func(i credentials.PluginRunInfo) {
			fmt.Println("asked for", i.Image)
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, image := range []string{"reg.io/a:1", "reg.io/b", "localhost:5000/c"} {
		creds, err := plugins.Lookup(context.Background(), image, nil)
		if err != nil {
			log.Fatal(err)
		}
		for _, c := range creds {
			fmt.Println(image, c.Username, "of", c.Source)
		}
	}
	// Output:
	// asked for reg.io/a
	// reg.io/a:1 node of plugin shell-plugin
	// reg.io/b node of plugin shell-plugin
}

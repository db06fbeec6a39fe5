//go:build linux

package adopt

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podsource/manifest"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/cri/serve"
)

// Real kubelets, on a runtime that runs nothing, give to static pods the UIDs that
// this repository's would take over.
func TestIntegrationKubeletsGiveTheExpectedUIDs(t *testing.T) {
	const manifests = "../../podsource/manifest/testdata/static"
	for _, real := range kubelets(t) {
		t.Run(real.name, func(t *testing.T) {
			n := bareNode(t)
			endpoint := filepath.Join(n.dir, "cri.sock")
			serveFake(t, endpoint)
			n.configure("unix://" + endpoint)
			paths, err := filepath.Glob(filepath.Join(manifests, "*.yaml"))
			require.NoError(t, err)
			paths = slices.DeleteFunc(paths, func(path string) bool {
				return strings.HasPrefix(real.name, "v1.34.") && slices.Contains(rejectedBy134, filepath.Base(path))
			})
			for _, path := range paths {
				n.write(filepath.Base(path), readStatic(t, path))
			}
			n.start(real)
			names := map[types.UID]string{}
			n.until("all pods are listed", func() error {
				pods, err := n.pods()
				for name, pod := range pods {
					names[pod.UID] = name
				}
				if err == nil && len(pods) < len(paths) {
					err = fmt.Errorf("%d of %d: %v", len(pods), len(paths), names)
				}
				return err
			})
			taken := 0
			for _, path := range paths {
				origin := "file:" + filepath.Join(n.dir, "manifests", filepath.Base(path))
				pod, err := manifest.Static([]byte(readStatic(t, path)), "node", origin, manifest.StaticOptions{Exists: func(uid types.UID) bool { return names[uid] != "" }})
				require.NoError(t, err)
				if assert.Equal(t, strings.TrimSuffix(pod.Name, "-node"), names[pod.UID], path) {
					taken++
				}
			}
			t.Logf("%s: %d of %d static pods have the expected UID", real.name, taken, len(paths))
		})
	}
}

// readStatic reads a manifest, without a RuntimeClass: a kubelet without an API server
// crashes when it looks one up.
func readStatic(t *testing.T, path string) string {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return strings.Replace(string(text), "  runtimeClassName: other\n", "", 1)
}

// rejectedBy134 are manifests with fields that 1.34 does not enable by default.
var rejectedBy134 = []string{"lifecycle.yaml", "remote.yaml"}

// serveFake serves a CRI runtime that runs nothing, until the test ends.
func serveFake(t *testing.T, endpoint string) {
	fake, err := fakecri.New(fakecri.Config{})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	listener, err := serve.Listen(ctx, endpoint)
	require.NoError(t, err)
	server, err := serve.New(serve.Config{Listener: listener, Runtime: fake, Images: fake, Streams: fake})
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		assert.NoError(t, <-ended)
	})
}

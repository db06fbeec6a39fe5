package cri_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// Logs of earlier attempts whose containers are gone determine the number of the
// next instance, but do not count as crashes: after a reboot, no container waits
// longer than after its first start.
func TestAttemptsWithoutContainersAreNotCrashes(t *testing.T) {
	for name, restart := range map[string]bool{"the agent stays": false, "the agent restarts": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				f.has("img:1")
				next := agents(t, f, cri.Config{})
				pod := podOf(container("web"))
				rt, _ := next()
				up(t, f, rt, pod)
				logs := filepath.Join(f.sandboxes()[0].Config.LogDirectory, "web")
				f.forgets()
				require.NoError(t, os.MkdirAll(logs, 0o755))
				for _, log := range []string{"0.log", "1.log", "2.log"} {
					require.NoError(t, os.WriteFile(filepath.Join(logs, log), nil, 0o644))
				}
				require.NoError(t, os.RemoveAll(filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(logs))), "root")))

				rt, _ = next()
				syncs(t, rt, pod)
				require.EqualValues(t, 3, f.newest("web").Config.Metadata.Attempt)
				f.exits("web", 1)
				if restart {
					rt, _ = next()
				}
				syncs(t, rt, pod)
				assert.EqualValues(t, 4, f.newest("web").Config.Metadata.Attempt, "no delay after the first exit")
				f.exits("web", 1)
				res, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
				require.ErrorContains(t, err, "back-off 10s restarting failed container=web")
				assert.EqualValues(t, 4, f.newest("web").Config.Metadata.Attempt)
				assert.Equal(t, 10*time.Second, time.Until(res.RetryAt), "the second waits for 10 s")
			})
		})
	}
}

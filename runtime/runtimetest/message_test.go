package runtimetest_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// failing runs one check, which must fail, and returns the output. The suite runs in a
// child process, as in TestTheSuiteNamesTheViolatedRequirement.
func failing(t *testing.T, check string, new func(*testing.T) runtime.Runtime) string {
	t.Helper()
	const child = "RUNTIMETEST_FAILING"
	if os.Getenv(child) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), child+"=1")
		out, err := cmd.CombinedOutput()
		require.Error(t, err, "the suite passes")
		return string(out)
	}
	s := memorySuite()
	s.Timing.Timeout = 10 * time.Second
	s.Within = func(t *testing.T, body func(t *testing.T)) {
		if !strings.HasSuffix(t.Name(), "/"+check) {
			t.SkipNow()
		}
		synctest.Test(t, body)
	}
	runtimetest.TestRuntime(t, new, s)
	t.SkipNow() // the caller's assertions are about the output
	return ""
}

func TestASandboxThatStaysReadyAfterAKillIsNamed(t *testing.T) {
	out := failing(t, "KillSendsSIGTERM", func(t *testing.T) runtime.Runtime { return newBroken(t, keepSandboxes) })
	assert.Contains(t, out, "KillPod returned nil while sandbox sandbox-1 (attempt 0) is ready: an agent would treat the pod as orphaned")
	assert.NotContains(t, out, "KillPod returned nil while container")
}

// keepSandboxes reports the newest sandbox of a killed pod as ready.
func keepSandboxes(b *broken, rt *runtimetest.Runtime) {
	var mu sync.Mutex
	killed := map[types.UID]bool{}
	b.kill = func(ctx context.Context, req runtime.KillRequest) error {
		err := rt.KillPod(ctx, req)
		mu.Lock()
		defer mu.Unlock()
		killed[req.UID] = true
		return err
	}
	b.status = func(ctx context.Context, uid types.UID) (*runtime.PodStatus, error) {
		s, err := rt.PodStatus(ctx, uid)
		mu.Lock()
		defer mu.Unlock()
		if err == nil && killed[uid] && len(s.Sandboxes) > 0 {
			s.Sandboxes[0].State = runtime.SandboxReady
		}
		return s, err
	}
}

func TestAddressesOfTheSandboxAloneAreNamed(t *testing.T) {
	out := failing(t, "IPsAreThoseOfReadySandbox", func(t *testing.T) runtime.Runtime {
		return newBroken(t, func(b *broken, rt *runtimetest.Runtime) {
			b.status = func(ctx context.Context, uid types.UID) (*runtime.PodStatus, error) {
				s, err := rt.PodStatus(ctx, uid)
				if err == nil {
					s.IPs = nil
				}
				return s, err
			}
		})
	})
	assert.Contains(t, out, "the newest sandbox has the IPs [10.0.0.1] and PodStatus.IPs is empty")
	assert.Contains(t, out, "copy the IPs of Sandboxes[0] into it")
}

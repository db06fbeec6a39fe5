package cri_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// A container that exited before the clock was set back has times in the future. The
// back-off follows the instance that was created last, not the newest times.
func TestACrashLoopIsBackedOffFromAfterTheClockWasSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.has("img:1")
		rt, _ := f.engine(t, cri.Config{})
		pod := podOf(container("web"))
		syncs(t, rt, pod)
		f.exits("web", 1)
		f.alter(f.newest("web"), func(old *runtimeapi.ContainerStatus) {
			old.CreatedAt += int64(time.Hour)
			old.StartedAt += int64(time.Hour)
			old.FinishedAt += int64(time.Hour)
		})
		starts := 0
		for range 600 {
			time.Sleep(time.Second)
			_, _ = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
			if len(f.running()) > 0 {
				starts++
				f.exits("web", 1)
			}
		}
		require.LessOrEqual(t, starts, 7)
	})
}
